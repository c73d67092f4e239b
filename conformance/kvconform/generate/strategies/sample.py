"""Hypothesis as a source of traces only: they are judged later, and `generate.shrink` makes failures short.

Values are made from random bytes, as external fuzzers make them. A run of Hypothesis itself makes most values by
changing earlier ones, so they are much alike. It also mixes in constants of the modules that happen to be
imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from random import Random
from typing import Any

from packaging.version import Version

from kvspec.errors import CannotRun

SIZE = 1 << 13
"""Random bytes for one value: the most that Hypothesis takes."""

ATTEMPTS = 10
"""Most attempts for each value: a strategy may reject a value half drawn."""


NEEDED = "6.170"
"""Hypothesis before it never drew from bytes what is far from 0: of `integers(2, 3)` nothing, of `integers(3, 9)`
nothing above 7."""


class DrewFewer(Exception):
    """A strategy gives fewer values than were asked for."""


def too_old() -> str:
    """Say that the installed Hypothesis is too old, and what to do, or empty where it is not."""
    there = _there()
    if Version(there) >= Version(NEEDED):
        return ""
    return f"Hypothesis {there} leaves out traces: install {NEEDED} or newer, pip install 'hypothesis>={NEEDED}'"


@cache
def _there() -> str:
    """The version of Hypothesis that is installed: looked up once, as it takes longer than drawing a trace."""
    return version("hypothesis")


def some(strategy: Any, count: int, seed: int) -> list[Any]:
    """Draw `count` values as `each` does. Raises DrewFewer."""
    return list(each(strategy, count, seed))


def each(strategy: Any, count: int, seed: int) -> Iterator[Any]:
    """Draw `count` independent values of a strategy, each when it is asked for. The same seed gives the same
    values, whatever is imported.

    The first is the simplest: it takes the first of all choices. Raises DrewFewer for a strategy that rejects most
    of what it begins; CannotRun where Hypothesis is too old.
    """
    from hypothesis import given, settings  # it needs a working folder, which a replay may lack

    if why := too_old():
        raise CannotRun(why)
    values: list[Any] = []

    @settings(database=None)
    @given(strategy)
    def collect(value: Any) -> None:
        values.append(value)

    test: Any = collect
    draw, random = test.hypothesis.fuzz_one_input, Random(seed)
    draw(bytes(SIZE))
    left = ATTEMPTS * count
    for number in range(count):
        while len(values) <= number and left:
            draw(random.randbytes(SIZE))
            left -= 1
        if len(values) <= number:
            raise DrewFewer(f"drew {len(values)} traces in {ATTEMPTS * count} attempts; {count} were asked for")
        yield values[number]
