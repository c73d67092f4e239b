"""Which chapter was met by which engine, and how they did: from the same records as the board."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kvreports.board.engines import Board, Engine
from kvreports.markdown import literal, table
from kvspec.chapters import CHAPTERS
from kvspec.records.run import HELD

ENOUGH = 2
"""How many engines a chapter is to be met by."""

HEAD = ("chapter", "holds in all that they claim", "deviates, and each deviation is filed", "met")

INTRODUCTION = f"""\
An engine is met where one of its caches claims the chapter. The number behind it counts its caches, where it has
several. It stands in the first column if all clauses that they claim hold. A chapter is met if {ENOUGH} engines are
in either column. mlx-vlm's caches began as a copy of mlx-lm's."""


@dataclass
class Met:
    """The engines that a chapter was met by: how many caches hold, and how many deviate, by the engine's name."""

    held: dict[str, int] = field(default_factory=dict)
    filed: dict[str, int] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    """Those with a deviation that is not filed."""

    @property
    def engines(self) -> set[str]:
        """All that count."""
        return {*self.held, *self.filed} - self.open


def of(board: Board, chapter: str) -> Met:
    """Who met a chapter."""
    met = Met()
    for cache in board.caches:
        _count(met, cache.newest, chapter)
    return met


def _count(met: Met, engine: Engine, chapter: str) -> None:
    verdicts = {c.verdict for c in engine.record.clauses if c.chapter == chapter} - {"NOT_CLAIMED"}
    if chapter not in engine.chapters or not verdicts & {*HELD, "XFAIL"}:
        return
    name = engine.name.partition("-")[0]
    if verdicts <= {*HELD, "NOT_RUN"}:
        met.held[name] = met.held.get(name, 0) + 1
    elif verdicts <= {*HELD, "NOT_RUN", "XFAIL"}:
        met.filed[name] = met.filed.get(name, 0) + 1
    else:
        met.open.add(name)


def render(board: Board) -> str:
    """A row for each chapter."""
    return f"### By chapter\n\n{INTRODUCTION}\n\n{table(list(HEAD), list(rows(board)))}"


def rows(board: Board) -> Iterator[list[str]]:
    """The cells of each chapter."""
    for chapter in CHAPTERS:
        met = of(board, chapter)
        why = literal(board.unmet.get(chapter, ""))
        word = "yes" if len(met.engines) >= ENOUGH else f"no: {why}" if why else "no"
        yield [chapter, _named(met.held), _named({n: c for n, c in met.filed.items() if n not in met.open}), word]


def _named(counted: dict[str, int]) -> str:
    return literal(", ".join(f"{name} ({n})" if n > 1 else name for name, n in sorted(counted.items())))
