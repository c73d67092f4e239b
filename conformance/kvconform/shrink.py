"""Makes a failing trace short: operations dropped, then numbers lowered, while some difference remains.

One shrinker serves every source, covers and laws as well as exploration, and knows what traces are made of. It
is bounded by a number of attempts, because each costs a replay on a device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kvspec.errors import BadInput
from kvspec.operations import OPERATIONS, Operation
from kvspec.trace import Trace, from_json

Fails = Callable[[Trace], int]
"""How many operations of a trace it takes until it fails; 0 if it does not."""


@dataclass
class _Budget:
    attempts: int


def shrink(trace: Trace, fails: Fails, attempts: int = 400) -> Trace:
    """A trace that fails too, from which no single simplification can be taken away (within the attempts)."""
    budget = _Budget(attempts)
    found = True
    while found and budget.attempts > 0:
        found = False
        for candidate in _simpler(trace):
            if budget.attempts <= 0:
                break
            length = _tried(candidate, fails, budget)
            if length:
                trace, found = candidate.cut(length), True
                break
    return trace


def _tried(candidate: Trace, fails: Fails, budget: _Budget) -> int:
    try:
        from_json(candidate.to_json())
    except BadInput:
        return 0  # it lost a cache or a snapshot that a later operation names
    budget.attempts -= 1
    return fails(candidate)


def _simpler(trace: Trace) -> Iterator[Trace]:
    """Simpler traces, the most daring first."""
    n = len(trace.ops)
    size = max(n // 2, min(n, 1))
    while size:
        for i in range(0, n - size + 1, max(1, size // 2)):
            yield _with(trace, (*trace.ops[:i], *trace.ops[i + size :]))
        size //= 2
    yield from _plainer_configs(trace)
    yield from _smaller_rings(trace)
    for i, op in enumerate(trace.ops):
        for simpler in _simpler_operations(op):
            yield _with(trace, (*trace.ops[:i], simpler, *trace.ops[i + 1 :]))
    yield from _smaller_windows(trace)


def _with(trace: Trace, ops: tuple[Operation, ...]) -> Trace:
    return Trace(trace.profile, trace.config, ops)


def _simpler_operations(op: Operation) -> Iterator[Operation]:
    for a in OPERATIONS[op["op"]]:
        if a.name not in op:
            continue
        if not a.required:
            yield {k: v for k, v in op.items() if k != a.name}
        elif a.holds == "number":
            for lower in _lower(op[a.name]):
                yield {**op, a.name: lower}
        elif a.holds == "mask":
            for i in range(len(op[a.name])):
                yield {**op, a.name: [*op[a.name][:i], *op[a.name][i + 1 :]]}


def _lower(n: int) -> Iterator[int]:
    """Numbers nearer to 0: all of them while they are few, for a smaller one may fail where n - 1 does not."""
    yield from range(n) if n <= 8 else sorted({0, n // 2, n - n // 4, n - n // 16, n - 1})


def _plainer_configs(trace: Trace) -> Iterator[Trace]:
    for name, plain in (("batch", 1), ("kv_heads", 1), ("dtype", "f16"), ("k_dim", 8), ("v_dim", 6), ("step", 256)):
        if getattr(trace.config, name) != plain:
            yield Trace(trace.profile, trace.config.changed(**{name: plain}), trace.ops)


def _smaller_windows(trace: Trace) -> Iterator[Trace]:
    window = trace.config.window
    for lower in _lower(window) if window else ():
        if lower:
            yield Trace(trace.profile, trace.config.changed(window=lower), trace.ops)


def _smaller_rings(trace: Trace) -> Iterator[Trace]:
    """The window and every number that reaches it lowered together, so that what fills it still does."""
    window = trace.config.window or 0
    for less in (8, 4, 2, 1):
        if window > less:
            ops = tuple(_less(op, less, window) for op in trace.ops)
            yield Trace(trace.profile, trace.config.changed(window=window - less), ops)


def _less(op: Operation, less: int, window: int) -> Operation:
    numbers = {k: v for k, v in op.items() if k in ("n", "to", "at") and v >= window}
    return op | {k: v - less for k, v in numbers.items()}
