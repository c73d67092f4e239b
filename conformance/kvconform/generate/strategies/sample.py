"""Hypothesis as a source of traces only: they are judged later, and `generate.shrink` makes failures short.

Values are made from random bytes, as external fuzzers make them. A run of Hypothesis itself makes most values by
changing earlier ones, so they are much alike; and it mixes in constants of the modules that happen to be imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

SIZE = 1 << 13
"""Random bytes for one value: the most that Hypothesis takes."""

ATTEMPTS = 10
"""Most attempts for each value: a strategy may reject a value half drawn."""


class DrewFewer(Exception):
    """A strategy gives fewer values than were asked for."""


def some(strategy: Any, count: int, seed: int) -> list[Any]:
    """Draw `count` values as `each` does. Raises DrewFewer."""
    return list(each(strategy, count, seed))


def each(strategy: Any, count: int, seed: int) -> Iterator[Any]:
    """Draw `count` independent values of a strategy, each when it is asked for. The same seed gives the same
    values, whatever is imported.

    The first is the simplest: it takes the first of all choices. Raises DrewFewer for a strategy that rejects most
    of what it begins.
    """
    from hypothesis import given, settings  # it needs a working folder, which a replay may lack

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
