"""Which published adapters declare which dialect: what engines do differently on purpose, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvreports.board.engines import Board


@dataclass(frozen=True)
class Declared:
    """A value of a dialect of a chapter, and the adapters that declare it."""

    chapter: str
    name: str
    value: str
    adapters: Sequence[str]


def declared(board: Board) -> list[Declared]:
    """Every dialect that some adapter declares, in the order of the chapters."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for engine in board.engines:
        for dialect in engine.declared:
            found.setdefault(dialect, []).append(f"{engine.name} {engine.version}")
    order = {chapter: i for i, chapter in enumerate(board.chapters)}
    keys = sorted(found, key=lambda k: (order[k[0]], k[1], k[2]))
    return [Declared(*key, sorted(set(found[key]))) for key in keys]


def broken(board: Board) -> list[tuple[str, list[str]]]:
    """The clauses that published adapters break, those that most of them break first, each with the adapters."""
    by: dict[str, set[str]] = {}
    for engine in board.engines:
        for deviation in engine.deviations:
            for clause in deviation.failure.clauses:
                by.setdefault(clause, set()).add(f"{engine.name} {engine.version}")
    return [(clause, sorted(names)) for clause, names in sorted(by.items(), key=lambda b: (-len(b[1]), b[0]))]
