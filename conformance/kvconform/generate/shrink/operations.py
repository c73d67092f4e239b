"""Gives simpler operations to replace one of a failing trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kvspec.operations.table import (
    OPERATIONS,
    RUN,
    Operation,
    each_of,
    listed,
    numbers_in,
    positions_in,
    positions_named,
)

WRITTEN_OUT = 8
"""Operations of a run that are few enough to be written out."""


def in_the_place_of(op: Operation) -> Iterator[tuple[Operation, ...]]:
    """Give the replacements of an operation: a simpler one each, or several operations for a run."""
    return _simpler_runs(op) if op["op"] == RUN.name else ((simpler,) for simpler in _simpler_operations(op))


def _of_its_own(op: Operation) -> Iterator[Operation]:
    """Give a row of its own to a cache whose rows came in a parcel: what made the parcel may then be dropped."""
    if op["op"] == "unpack":
        yield {**{name: value for name, value in op.items() if name == "cache"}, "op": "append", "n": 1}


def shorter(ops: Sequence[Operation], most: int) -> Iterator[tuple[Operation, ...]]:
    """Drop neighbouring operations: at first `most` of them, in the end one."""
    while most:
        for i in range(0, len(ops) - most + 1, max(1, most // 2)):
            yield (*ops[:i], *ops[i + most :])
        most //= 2


def _simpler_runs(run: Operation) -> Iterator[tuple[Operation, ...]]:
    """Give what may stand in a run's place. It may have fewer operations, simpler ones, or do them fewer times.
    Where they are few, they may be written out."""
    ops, times = run["ops"], run["times"]
    yield from (({**run, "ops": [*fewer]},) for fewer in shorter(ops, len(ops) // 2))
    yield from (({**run, "times": fewer},) for fewer in lower_numbers(times) if fewer)
    if len(ops) * times <= WRITTEN_OUT:
        yield (*each_of(run),)
    for i, op in enumerate(ops):
        yield from (({**run, "ops": [*ops[:i], simpler, *ops[i + 1 :]]},) for simpler in _simpler_operations(op))


def _simpler_operations(op: Operation) -> Iterator[Operation]:
    """Give the operation with one argument left out or simpler; or a simpler one in its place."""
    yield from _of_its_own(op)
    for a in (a for a in OPERATIONS[op["op"]].arguments if a.name in op):
        if a.required:
            yield from ({**op, a.name: value} for value in _simpler_values(a.holds, op[a.name]))
        else:
            yield {k: v for k, v in op.items() if k != a.name}


def _simpler_values(holds: str, value: Any) -> Iterator[Any]:
    """Give simpler values of an argument that holds this."""
    match holds:
        case "number":
            yield from lower_numbers(value)
        case "layers":
            yield from _without_each(value)
        case "list":
            yield from _lower_each(numbers_in(value))
        case "positions":
            named = positions_in(value)
            yield from (positions_named(named[:i] + named[i + 1 :]) for i in range(len(named)) if named[1:])
        case "mask":
            yield from ([*value[:i], *value[i + 1 :]] for i in range(len(value)))


def _lower_each(numbers: list[int]) -> Iterator[str]:
    """Give lists in which one number is lower."""
    for i, n in enumerate(numbers):
        yield from (listed([*numbers[:i], lower, *numbers[i + 1 :]]) for lower in lower_numbers(n))


def lower_numbers(n: int) -> Iterator[int]:
    """Give smaller numbers: all if they are few, because a smaller one may fail although n - 1 does not."""
    yield from range(n) if n <= 8 else sorted({0, n // 2, n - n // 4, n - n // 16, n - 1})


def _without_each(letters: str) -> Iterator[str]:
    """Give a round with one of its layers dropped or replaced by A."""
    yield from (letters[:i] + letters[i + 1 :] for i in range(len(letters)) if len(letters) > 1)
    yield from (letters[:i] + "A" + letters[i + 1 :] for i in range(len(letters)) if "A" not in letters)
