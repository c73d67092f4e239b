"""The large numbers of a trace: where they stand, and a trace in which one of them is lower."""

from __future__ import annotations

from kvspec.geometry import OWN, OWN_SIZES
from kvspec.operations.table import RUN, Operation
from kvspec.trace import Trace

LARGE = 64
"""Larger numbers are lowered by halving, as if every number above one that fails failed too."""

SIZES = tuple(name for name, field in OWN.items() if field.reached)
"""Sizes that the numbers in operations reach; both are lowered together, so that a full cache stays full."""

COUNTS = ("step", *(name for name in OWN_SIZES if OWN[name].high > 1))
"""Sizes of a config that are no geometry."""

REACH = 3
"""How far below a size a number may be that goes with it."""

REACHES = ("n", "to", "at", "source", "position", "rows")
"""Arguments that may reach a size."""

Place = tuple[str | int, ...]
"""Where a number stands: (field of the config,), (operation, argument), or (run, operation in it, argument)."""


def large_numbers(trace: Trace) -> list[Place]:
    """Give where large numbers stand: sizes of the config, then arguments of operations."""
    fields = [(name,) for name in COUNTS if getattr(trace.config, name)]
    found: list[Place] = [*fields]
    for i, op in enumerate(trace.ops):
        found += [(i, a) for a, value in op.items() if type(value) is int]
        parts = op["ops"] if op["op"] == RUN.name else ()
        found += [(i, k, a) for k, part in enumerate(parts) for a, value in part.items() if type(value) is int]
    return [place for place in found if number_at(trace, place) > LARGE]


def number_at(trace: Trace, place: Place) -> int:
    """Give the number at a place."""
    match place:
        case (str(name),):
            return int(getattr(trace.config, name))
        case (int(i), str(name)):
            return int(trace.ops[i][name])
        case (int(i), int(k), str(name)):
            return int(trace.ops[i]["ops"][k][name])
    raise ValueError(place)


def with_number(trace: Trace, place: Place, number: int) -> Trace:
    """Put a number at a place. If it is a size of the config, arguments that reach the size change by as much."""
    match place:
        case (str(name),):
            size = getattr(trace.config, name)
            ops = tuple(lower_reaching(op, size - number, size - REACH) for op in trace.ops)
            return Trace(trace.kind, trace.config.changed(**{name: number}), ops)
        case (int(i), *inner, str(name)):
            changed = _with_argument(trace.ops[i], [int(k) for k in inner], name, number)
            return with_operations(trace, (*trace.ops[:i], changed, *trace.ops[i + 1 :]))
    raise ValueError(place)


def _with_argument(op: Operation, inner: list[int], name: str, number: int) -> Operation:
    """Change an argument of an operation, or of the operation with this index in a run."""
    if not inner:
        return {**op, name: number}
    (k,) = inner
    return {**op, "ops": [*op["ops"][:k], {**op["ops"][k], name: number}, *op["ops"][k + 1 :]]}


def with_operations(trace: Trace, ops: tuple[Operation, ...]) -> Trace:
    """Give a trace of the same cache with other operations."""
    return Trace(trace.kind, trace.config, ops)


def name_of(trace: Trace, place: Place) -> str:
    """What a number is called: `window`, `rows of append`, `times of run`."""
    match place:
        case (str(name),):
            return name
        case (int(i), *inner, str(name)):
            op = trace.ops[i]["ops"][inner[0]] if inner else trace.ops[i]
            return f"{name} of {op['op']}"
    raise ValueError(place)


def lower_reaching(op: Operation, less: int, size: int) -> Operation:
    """Lower the arguments that reach `size` by `less`."""
    if op["op"] == RUN.name:
        return {**op, "ops": [lower_reaching(part, less, size) for part in op["ops"]]}
    numbers = {k: v for k, v in op.items() if k in REACHES and v >= size}
    return op | {k: v - less for k, v in numbers.items()}
