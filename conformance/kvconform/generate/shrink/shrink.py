"""Shortens a failing trace: drops operations, then lowers numbers, as long as some difference remains.

One shrinker serves covers, laws and exploration, and knows the parts of a trace. A number of attempts limits it,
because each costs a replay on a device.
"""

from __future__ import annotations

from collections.abc import Callable

from kvconform.generate.shrink.numbers import large_numbers, name_of, number_at, with_number, with_operations
from kvconform.generate.shrink.simpler import simpler
from kvspec.operations.table import RUN, Operation
from kvspec.trace import Trace, replayable

Fails = Callable[[Trace], int]
"""Counts the operations of a trace until it fails, or 0 if it does not fail."""


def shrink(trace: Trace, fails: Fails, attempts: int = 400) -> Trace:
    """Shorten a failing trace until no single simplification still fails, or the attempts are used up."""
    joined = _joined(trace)
    if joined != trace and replayable(joined) and (length := fails(joined)):
        trace = joined.cut(length)
    trace, attempts = _lowered(trace, fails, attempts)
    candidates = simpler(trace)
    while attempts > 0 and (candidate := next(candidates, None)):
        if not replayable(candidate):
            continue
        attempts -= 1
        if length := fails(candidate):
            trace = candidate.cut(length)
            candidates = simpler(trace)
    return trace


def _joined(trace: Trace) -> Trace:
    """Join the appends of runs that follow one another."""
    ops = ({**op, "ops": _one_append(op["ops"])} if op["op"] == RUN.name else op for op in trace.ops)
    return with_operations(trace, tuple(ops))


def _one_append(ops: list[Operation]) -> list[Operation]:
    """Join appends that differ in their rows alone, but not the last operation of a run: it is observed."""
    joined: list[Operation] = []
    for op in ops[:-1]:
        before = joined[-1] if joined else {}
        if op["op"] == "append" and {**before, "n": 0} == {**op, "n": 0}:
            joined[-1] = {**op, "n": before["n"] + op["n"]}
        else:
            joined.append(op)
    return [*joined, ops[-1]]


def first_of(trace: Trace, fails: Fails) -> list[str]:
    """Name each large number that the trace needs to fail: with one less it does not fail."""
    found = []
    for place in large_numbers(trace):
        number = number_at(trace, place)
        less = with_number(trace, place, number - 1)
        if replayable(less) and not fails(less):
            found.append(f"{name_of(trace, place)} from {number} on")
    return found


def _lowered(trace: Trace, fails: Fails, attempts: int) -> tuple[Trace, int]:
    """Lower each large number, and what reaches it, as far as the trace still fails. Give the attempts left too."""
    for place in large_numbers(trace):
        low = 0
        # Meanwhile its operation may have been cut off, or the number may no longer be large.
        while attempts > 0 and place in large_numbers(trace) and (high := number_at(trace, place)) - low > 1:
            candidate = with_number(trace, place, middle := (low + high) // 2)
            attempts -= 1
            if replayable(candidate) and (length := fails(candidate)):
                trace = candidate.cut(length)
            else:
                low = middle
    return trace, attempts
