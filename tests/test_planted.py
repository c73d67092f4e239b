"""Real bugs are found: each is planted in the reference, and shows under its clause on few operations.

What is planted stands in `planted_<profile>.py`, a module for each chapter.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from local import LocalBench
from planted import Planted

from kvconform import vectors
from kvconform.shrink import shrink
from kvconform.suite import common
from kvconform.trial import Outcome
from kvspec.clauses import index
from kvspec.notation import sentence
from kvspec.trace import Trace

MODULES = sorted(f.stem for f in Path(__file__).parent.glob("planted_*.py"))
ALL: list[Planted] = [p for name in MODULES for p in importlib.import_module(name).PLANTED]

LONGEST = 8
"""Operations that show a bug, at most."""
FEWEST = 25
"""Entries of the catalogue that are planted, at least."""
EXPLORED = 60
"""Traces of each strategy."""


def named(p: Planted) -> str:
    return f"{p.entry}-{p.clauses[0]}"


@cache
def explored(profile: str) -> tuple[Trace, ...]:
    """Traces as exploration draws them, the same every time."""
    try:
        strategies = importlib.import_module(f"kvconform.strategies.{profile}")
    except ModuleNotFoundError:
        return ()
    drawn = getattr(strategies, "explored", None)
    return () if drawn is None else tuple(common._drawn(_Seeded(), drawn(), EXPLORED))


class _Seeded:
    seed = 20


def traces(p: Planted) -> Iterator[Trace]:
    """What the suite has for the profiles of the clauses: examples, covers, explored traces."""
    profiles = list(dict.fromkeys(index()[c].profile for c in p.clauses))
    yield from (e.trace for c in index().values() if c.profile in profiles for e in c.examples)
    for profile in profiles:
        yield from (t for frozen in vectors.load(profile) for t in frozen.traces())
    for profile in profiles:
        yield from explored(profile)


def shown(p: Planted) -> tuple[LocalBench, Outcome | None]:
    """The first trace on which one of its clauses is blamed."""
    bench = LocalBench(p.adapter())
    found = (bench.run(t) for t in traces(p))
    return bench, next((seen for seen in found if set(seen.blamed) & set(p.clauses)), None)


@pytest.mark.parametrize("planted", ALL, ids=named)
def test_a_real_bug_is_found_under_its_clause_on_a_short_trace(planted: Planted) -> None:
    bench, seen = shown(planted)
    assert seen is not None, "no example, no cover and no explored trace shows it under its clauses"

    def fails(trace: Trace) -> int:
        other = bench.run(trace)
        return len(other.steps) if set(other.blamed) & set(planted.clauses) else 0

    short = shrink(seen.trace.cut(len(seen.steps)), fails)
    assert fails(short) == len(short.ops)
    assert len(short.ops) <= LONGEST, sentence(short)


@pytest.mark.parametrize("planted", ALL, ids=named)
def test_a_clause_that_a_real_bug_breaks_links_to_it(planted: Planted) -> None:
    assert any(planted.url in index()[c].reason for c in planted.clauses)


def test_many_entries_of_the_catalogue_are_planted_and_none_is_planted_twice() -> None:
    urls: dict[str, set[str]] = {}
    for p in ALL:
        urls.setdefault(p.entry, set()).add(p.url)
    assert len(urls) >= FEWEST
    assert {entry: found for entry, found in urls.items() if len(found) > 1} == {}, "an entry has one address"
    alike = [(p.entry, made(p), *p.clauses) for p in ALL]
    assert sorted(set(alike)) == sorted(alike)


def made(p: Planted) -> str:
    """The adapter and what it opens, by their names."""
    adapter: Any = p.adapter()
    return " ".join([type(adapter).__name__, *(c.__qualname__ for c in adapter.caches.values())])


def test_the_reference_itself_shows_none_of_them() -> None:
    """What finds a bug is the bug: on the sound reference the same traces differ nowhere."""
    from kvadapters.reference import Reference

    bench = LocalBench(Reference())
    for profile in {index()[c].profile for p in ALL for c in p.clauses}:
        examples = [e.trace for c in index().values() if c.profile == profile for e in c.examples]
        for t in (*examples, *explored(profile)):
            assert not bench.run(t).failed, sentence(t)
