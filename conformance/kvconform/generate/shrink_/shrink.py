"""Shortens a failing trace: drops operations, then lowers numbers, as long as some difference remains.

One shrinker serves covers, laws and exploration, and knows the parts of a trace. A number of attempts limits it,
because each costs a replay on a device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kvspec.errors import BadInput
from kvspec.operations.table import OPERATIONS, RUN, Operation, each_of, listed, numbers_in
from kvspec.trace import Trace, from_json

WRITTEN_OUT = 8
"""Operations of a run that are few enough to be written out."""

Fails = Callable[[Trace], int]
"""Counts the operations of a trace until it fails; 0 if it does not fail."""


def shrink(trace: Trace, fails: Fails, attempts: int = 400) -> Trace:
    """Shorten a failing trace until no single simplification still fails, or the attempts are used up."""
    joined = _joined(trace)
    if joined != trace and _replayable(joined) and (length := fails(joined)):
        trace = joined.cut(length)
    trace, attempts = _lowered(trace, fails, attempts)
    candidates = simpler(trace)
    while attempts > 0 and (candidate := next(candidates, None)):
        if not _replayable(candidate):
            continue
        attempts -= 1
        if length := fails(candidate):
            trace = candidate.cut(length)
            candidates = simpler(trace)
    return trace


def _joined(trace: Trace) -> Trace:
    """Join the appends of runs that follow one another."""
    ops = ({**op, "ops": _one_append(op["ops"])} if op["op"] == RUN.name else op for op in trace.ops)
    return _with(trace, tuple(ops))


def _one_append(ops: list[Operation]) -> list[Operation]:
    """Make one of appends that are alike but for their rows, all but the last of a run, which is observed."""
    joined: list[Operation] = []
    for op in ops[:-1]:
        before = joined[-1] if joined else {}
        if op["op"] == "append" and {**before, "n": 0} == {**op, "n": 0}:
            joined[-1] = {**op, "n": before["n"] + op["n"]}
        else:
            joined.append(op)
    return [*joined, ops[-1]]


def first_of(trace: Trace, fails: Fails) -> list[str]:
    """Say of each large number from which on the trace fails: one less does not."""
    found = []
    for place in _places(trace):
        number = _number_at(trace, place)
        less = _put(trace, place, number - 1)
        if _replayable(less) and not fails(less):
            found.append(f"{_name(trace, place)} from {number} on")
    return found


def _name(trace: Trace, place: Place) -> str:
    """What a number is called: `window`, `rows of append`, `times of run`."""
    match place:
        case (str(name),):
            return name
        case (int(i), *inner, str(name)):
            op = trace.ops[i]["ops"][inner[0]] if inner else trace.ops[i]
            return f"{name} of {op['op']}"
    raise ValueError(place)


LARGE = 64
"""Of a larger number the least that fails is searched for by halving, as if all above it failed too."""


def _lowered(trace: Trace, fails: Fails, attempts: int) -> tuple[Trace, int]:
    """Lower each large number to the least with which the trace still fails, first together with those that it
    reaches; give the attempts that are left too."""
    for place in _places(trace):
        low = 0
        # Its operation may have been cut off meanwhile, or the number may be large no more.
        while attempts > 0 and place in _places(trace) and (high := _number_at(trace, place)) - low > 1:
            candidate = _put(trace, place, middle := (low + high) // 2)
            attempts -= 1
            if _replayable(candidate) and (length := fails(candidate)):
                trace = candidate.cut(length)
            else:
                low = middle
    return trace, attempts


Place = tuple[str | int, ...]
"""Where a number stands: a field of the config, or operation, perhaps operation in a run, and argument."""


def _places(trace: Trace) -> list[Place]:
    """Give where large numbers stand: sizes of the config, then arguments of operations."""
    fields = [(name,) for name in (*SIZES, "step", "layers", "page_size", "pages") if getattr(trace.config, name)]
    found: list[Place] = [*fields]
    for i, op in enumerate(trace.ops):
        found += [(i, a) for a, value in op.items() if type(value) is int]
        parts = op["ops"] if op["op"] == RUN.name else ()
        found += [(i, k, a) for k, part in enumerate(parts) for a, value in part.items() if type(value) is int]
    return [place for place in found if _number_at(trace, place) > LARGE]


def _number_at(trace: Trace, place: Place) -> int:
    match place:
        case (str(name),):
            return int(getattr(trace.config, name))
        case (int(i), str(name)):
            return int(trace.ops[i][name])
        case (int(i), int(k), str(name)):
            return int(trace.ops[i]["ops"][k][name])
    raise ValueError(place)


def _put(trace: Trace, place: Place, number: int) -> Trace:
    """Put a number in a place; a size of the config takes with it, by as much, what reaches it."""
    match place:
        case (str(name),):
            size = getattr(trace.config, name)
            ops = tuple(_less(op, size - number, size - REACH) for op in trace.ops)
            return Trace(trace.kind, trace.config.changed(**{name: number}), ops)
        case (int(i), *inner, str(name)):
            op = trace.ops[i]
            if inner:
                k = int(inner[0])
                changed = {**op, "ops": [*op["ops"][:k], {**op["ops"][k], name: number}, *op["ops"][k + 1 :]]}
            else:
                changed = {**op, name: number}
            return _with(trace, (*trace.ops[:i], changed, *trace.ops[i + 1 :]))
    raise ValueError(place)


def _replayable(candidate: Trace) -> bool:
    """Tell whether it still has all caches and snapshots that its operations name."""
    try:
        from_json(candidate.to_json())
    except BadInput:
        return False
    return True


def simpler(trace: Trace) -> Iterator[Trace]:
    """Give simpler traces, the boldest simplification first."""
    n = len(trace.ops)
    size = max(n // 2, min(n, 1))
    while size:
        for i in range(0, n - size + 1, max(1, size // 2)):
            yield _with(trace, (*trace.ops[:i], *trace.ops[i + size :]))
        size //= 2
    yield from _plainer_configs(trace)
    yield from _smaller_caches(trace)
    yield from _fewer_layers(trace)
    yield from _fewer_sequences(trace)
    for i, op in enumerate(trace.ops):
        in_its_place = _simpler_runs(op) if op["op"] == RUN.name else ((x,) for x in _simpler_operations(op))
        for simpler in in_its_place:
            yield _with(trace, (*trace.ops[:i], *simpler, *trace.ops[i + 1 :]))
    yield from _smaller_sizes(trace)


def _without_each(letters: str) -> Iterator[str]:
    """Give a round with one of its layers dropped or replaced by A."""
    yield from (letters[:i] + letters[i + 1 :] for i in range(len(letters)) if len(letters) > 1)
    yield from (letters[:i] + "A" + letters[i + 1 :] for i in range(len(letters)) if "A" not in letters)


def _with(trace: Trace, ops: tuple[Operation, ...]) -> Trace:
    return Trace(trace.kind, trace.config, ops)


def _simpler_runs(run: Operation) -> Iterator[tuple[Operation, ...]]:
    """Give what may stand in a run's place: a run of fewer operations, fewer times, or simpler ones; and its
    operations written out, where they are few."""
    ops, times = run["ops"], run["times"]
    size = len(ops) // 2
    while size:
        for i in range(0, len(ops) - size + 1, max(1, size // 2)):
            yield ({**run, "ops": [*ops[:i], *ops[i + size :]]},)
        size //= 2
    yield from (({**run, "times": fewer},) for fewer in _lower(times) if fewer)
    if len(ops) * times <= WRITTEN_OUT:
        yield (*each_of(run),)
    for i, op in enumerate(ops):
        yield from (({**run, "ops": [*ops[:i], simpler, *ops[i + 1 :]]},) for simpler in _simpler_operations(op))


def _simpler_operations(op: Operation) -> Iterator[Operation]:
    for a in OPERATIONS[op["op"]].arguments:
        if a.name not in op:
            continue
        if not a.required:
            yield {k: v for k, v in op.items() if k != a.name}
        elif a.holds == "number":
            for lower in _lower(op[a.name]):
                yield {**op, a.name: lower}
        elif a.holds == "layers":
            yield from ({**op, a.name: fewer} for fewer in _without_each(op[a.name]))
        elif a.holds == "list":
            yield from ({**op, a.name: lower} for lower in _lower_each(numbers_in(op[a.name])))
        elif a.holds == "mask":
            for i in range(len(op[a.name])):
                yield {**op, a.name: [*op[a.name][:i], *op[a.name][i + 1 :]]}


def _lower_each(numbers: list[int]) -> Iterator[str]:
    """Give lists in which one number is lower."""
    for i, n in enumerate(numbers):
        yield from (listed([*numbers[:i], lower, *numbers[i + 1 :]]) for lower in _lower(n))


def _lower(n: int) -> Iterator[int]:
    """Give smaller numbers: all if they are few, because a smaller one may fail although n - 1 does not."""
    yield from range(n) if n <= 8 else sorted({0, n // 2, n - n // 4, n - n // 16, n - 1})


PLAIN = {"batch": 1, "kv_heads": 1, "dtype": "f16", "k_dim": 8, "v_dim": 6, "step": 256, "layout": "token"}
"""The simplest value of each config field."""

SIZES = ("window", "capacity", "max_len")
"""Sizes that the numbers in operations reach; both are lowered together, so that a full cache stays full."""

REACH = 3
"""How far below a size a number may be that goes with it."""

REACHES = ("n", "to", "at", "source", "position", "rows")
"""Arguments that may reach a size."""


def _plainer_configs(trace: Trace) -> Iterator[Trace]:
    for name, plain in PLAIN.items():
        if getattr(trace.config, name) not in (plain, None):
            yield Trace(trace.kind, trace.config.changed(**{name: plain}), trace.ops)


def _smaller_sizes(trace: Trace) -> Iterator[Trace]:
    for name in (*SIZES, "layers"):
        size = getattr(trace.config, name)
        for lower in _lower(size) if size else ():
            if lower:
                yield Trace(trace.kind, trace.config.changed(**{name: lower}), trace.ops)


def _smaller_caches(trace: Trace) -> Iterator[Trace]:
    """Lower a size together with every number that reaches it."""
    for name in SIZES:
        size = getattr(trace.config, name) or 0
        for less in (8, 4, 2, 1):
            if size > less:
                ops = tuple(_less(op, less, size) for op in trace.ops)
                yield Trace(trace.kind, trace.config.changed(**{name: size - less}), ops)


def _less(op: Operation, less: int, size: int) -> Operation:
    if op["op"] == RUN.name:
        return {**op, "ops": [_less(part, less, size) for part in op["ops"]]}
    numbers = {k: v for k, v in op.items() if k in REACHES and v >= size}
    return op | {k: v - less for k, v in numbers.items()}


def _fewer_sequences(trace: Trace) -> Iterator[Trace]:
    """Drop a sequence of a padded batch, and its number from every list that has one for each sequence."""
    batch = trace.config.batch
    for s in range(batch) if trace.config.padding is not None and batch > 1 else ():
        ops = tuple({k: _without(s, v, batch) if k in EACH else v for k, v in op.items()} for op in trace.ops)
        yield Trace(trace.kind, trace.config.changed(batch=batch - 1), ops)


EACH = ("lengths", "counts")
"""Arguments that list a number for each sequence."""


def _without(sequence: int, text: str, batch: int) -> str:
    numbers = numbers_in(text)
    return listed(numbers[:sequence] + numbers[sequence + 1 :]) if len(numbers) == batch else text


def _fewer_layers(trace: Trace) -> Iterator[Trace]:
    """Drop the last layer of a store, with the operations on it alone; or the first, and renumber the others."""
    layers = trace.config.layers or 0
    if layers < 2:
        return
    fewer = trace.config.changed(layers=layers - 1)
    yield Trace(trace.kind, fewer, tuple(op for op in trace.ops if op.get("layer") != layers - 1))
    others = [op for op in trace.ops if op.get("layer") != 0]
    moved = (op | {"layer": op["layer"] - 1} if op.get("layer", 0) > 0 else op for op in others)
    yield Trace(trace.kind, fewer, tuple(moved))
