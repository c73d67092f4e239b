"""Fits traces to what an adapter claims: its abilities, its dtypes, the rows of an append, the batch.

Frozen covers and worked examples use one dtype and append several rows. An engine that takes another dtype is
judged on the same traces with that dtype. For one that takes one row at a time, each append and each draft is
split into as many as needed. The batch limit holds for the batch of a cache and for the sequences of a store's
batch. Operations that it does not claim are left out; a worked example ends before the first of them, because its
table says what follows from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile
from typing import Any

from kvconform.generate.claims.shown_by_outputs import attending
from kvspec.contract import LEVELS, Description
from kvspec.geometry import Config, valid
from kvspec.operations.abilities import needed, needed_to_open
from kvspec.operations.table import (
    OPEN,
    OPERATIONS,
    RUN,
    Operation,
    argument,
    cache_of,
    caches_named,
    length_of,
    listed,
    names_used,
    numbers_in,
    parts_of,
)
from kvspec.reading.clauses import Clause
from kvspec.registry import RECORDS
from kvspec.trace import LARGEST_TRACE, Trace, looked_at, opening, replayable, used_chapters

OPENS_A: Operation = {"op": OPEN.name}

PIECES = 64
"""Most pieces of one append; a trace that needs more is left out."""


APPENDS = ("append", "draft")
"""Operations that the append limit applies to, and that can be done in pieces."""


def within(trace: Trace, adapter: Description) -> Trace:
    """Fit the trace to the adapter's limits; `suits` tells whether the result is within them."""
    config, largest = trace.config, adapter.largest_append
    if config.dtype not in adapter.dtypes:
        config = config.changed(dtype=_other(trace, adapter))
    largest_batch = adapter.largest_batch if adapter.able(needed_to_open(trace.kind, config)) else 1
    if largest_batch is not None and config.batch > largest_batch:
        config = config.changed(batch=largest_batch)
    if adapter.most_heads is not None and config.kv_heads > adapter.most_heads:
        config = config.changed(kv_heads=adapter.most_heads)
    if valid(config):
        config = adapter.widened(adapter.formed(config), _widths_named(trace))
    given = attending(trace, adapter)
    given = given if adapter.runs else _one_by_one(Trace(trace.kind, trace.config, given))
    given = tuple(_as_taken(op, adapter, config.dtype) for op in given)
    ops = given if largest is None else tuple(piece for op in given for piece in _pieces(op, largest))
    fit = Trace(trace.kind, config, ops)
    fit = Trace(trace.kind, config, tuple(_in_chunks(fit, adapter)))
    return trace if fit == trace else fit  # what is known of a trace holds for that one alone


def _as_taken(op: Operation, adapter: Description, dtype: str) -> Operation:
    """Give the operation with inputs that the adapter takes. Inputs in a form that it does not take become plain.
    Beside rows of 16 bits, queries of more digits become random ones, because the engine may not have such
    digits."""
    if op["op"] == RUN.name:
        return {**op, "ops": [_as_taken(part, adapter, dtype) for part in op["ops"]]}
    plain = "input" in op and op["input"] not in adapter.inputs
    op = {k: v for k, v in op.items() if k != "input"} if plain else op
    return {**op, "queries": "random"} if op.get("queries") == "fine" and dtype != "f32" else op


def _one_by_one(trace: Trace) -> tuple[Operation, ...]:
    """Write runs out, for an engine that does not take them in one message. If the trace then costs too much, keep
    the runs."""
    if sum(map(length_of, trace.ops)) > LARGEST_TRACE:
        return trace.ops
    written_out = trace.one_by_one()
    return written_out.ops if replayable(written_out) else trace.ops


def _in_chunks(trace: Trace, adapter: Description) -> Iterator[Operation]:
    """Split appends and drafts of more rows than a ring takes at once. An append of one row more stays whole,
    because it is refused; no such draft does, because it may be taken or refused."""
    chunks = {"A": _chunk(trace.kind, trace.config, adapter)}
    for op in trace.ops:
        if op["op"] == RUN.name:
            parts = _in_chunks(Trace(trace.kind, trace.config, tuple(op["ops"])), adapter)
            yield {**op, "ops": list(parts)}
            continue
        if op["op"] == OPEN.name:
            chunks[cache_of(op)] = _chunk(*opening(trace, op), adapter)
        chunk = chunks.get(cache_of(op))
        refused = chunk is not None and op["op"] == "append" and op["n"] == chunk + 1
        yield from [op] if chunk is None or refused else _pieces(op, chunk)


def _chunk(kind: str, config: Config, adapter: Description) -> int | None:
    """Give the most rows that a cache takes at once; None for any."""
    claim = adapter.chapters.get(kind)
    return None if claim is None else claim.largest_append(config)


def _widths_named(trace: Trace) -> set[int]:
    """Give the widths that operations name: a config of another width keeps misfits misfits."""
    return {op[name] for op in trace.ops for name in ("k_dim", "v_dim") if op.get(name) is not None}


def _other(trace: Trace, adapter: Description) -> str:
    """Choose a dtype that the adapter takes and no operation names, so that misfits stay misfits; else keep the
    dtype.

    A trace that copies between dtypes keeps its own, because it tests the cast.
    """
    named = {op["dtype"] for op in trace.ops if op.get("dtype")}
    if named and any(op["op"] == "copy" for op in trace.ops):
        return trace.config.dtype
    return next((d for d in adapter.dtypes if d not in named), trace.config.dtype)


def _pieces(op: Operation, largest: int) -> list[Operation]:
    if op["op"] == RUN.name:
        return [{**op, "ops": [piece for part in op["ops"] for piece in _pieces(part, largest)]}]
    if op["op"] not in APPENDS or not largest < op["n"] <= PIECES * largest or argument(op, "values") is not None:
        return [op]
    whole, rest = divmod(op["n"], largest)
    each = [largest] * whole + [rest] * (rest > 0)
    if "on" not in op:
        return [{**op, "n": n} for n in each]
    on = numbers_in(op["on"])
    return [{**op, "n": n, "on": listed(on[i * largest :][:n])} for i, n in enumerate(each)]


def suits(trace: Trace, adapter: Description) -> bool:
    """Tell whether the adapter declares the chapters that a trace uses, and the trace is within its limits."""
    if not adapter.runs and any(op["op"] == RUN.name for op in trace.ops):
        return False
    claims = used_chapters(trace) <= set(adapter.chapters) and adapter.able(
        needed_to_open(trace.kind, trace.config)
    )
    return claims and _in_limits(trace, adapter)


def fitted(traces: Iterable[Trace], adapter: Description) -> Iterator[Trace]:
    """Fit traces to the adapter; leave out those that do not suit it, and those that no record could hold. If a run
    loses its last operation, the one before it is observed, and that may have too many rows."""
    for given in traces:
        trace = claimed(whole := within(given, adapter), adapter)
        runs = [op for op in trace.ops if op["op"] == RUN.name]
        if suits(trace, adapter) and (not runs or trace.ops == whole.ops or replayable(trace)):
            yield trace


def claimed(trace: Trace, adapter: Description) -> Trace:
    """Leave out the operations that the adapter does not claim, those that open a kind that it does not claim, and
    those that need their results.

    The abilities that an operation takes may depend on what the cache holds, and so on what else is left out. Such
    operations are left out one at a time, the first one first, each with those that then change nothing.
    """
    out = _opening_others(trace, adapter)
    if adapter.complete and not out:
        return trace
    kept = _kept(trace, adapter, out)
    while more := _first_by_state(kept, trace, adapter):
        out |= more
        kept = _kept(trace, adapter, out)
    return Trace(trace.kind, trace.config, tuple(op for _, op in kept))


def _opening_others(trace: Trace, adapter: Description) -> set[int]:
    """The numbers of the operations that open a kind that the adapter does not claim."""
    opens = ((number, op) for number, op in enumerate(trace.ops) if op["op"] == OPEN.name)
    return {number for number, op in opens if opening(trace, op)[0] not in adapter.chapters}


def _lacking_by_state(trace: Trace, adapter: Description) -> Iterable[tuple[int, list[str], bool]]:
    """The operations that take abilities which the adapter does not claim, because of what the cache holds."""
    if adapter.complete:
        return ()
    from kvconform.generate.claims.needed_by_state import lacking_by_state  # it follows the list model

    return lacking_by_state(trace, adapter)


def _first_by_state(kept: list[tuple[int, Operation]], trace: Trace, adapter: Description) -> set[int]:
    """The numbers of the operations to leave out next."""
    rest = Trace(trace.kind, trace.config, tuple(op for _, op in kept))
    lacks = [(kept[n][0], refused) for n, _, refused in _lacking_by_state(rest, adapter)]
    taken = [number for number, refused in lacks if not refused][:1]
    return {number for number, refused in lacks if refused and (not taken or number < taken[0])} | {*taken}


def _kept(trace: Trace, adapter: Description, out: set[int]) -> list[tuple[int, Operation]]:
    """The operations that are claimed, by number, without some that are left out, and what needs their results."""
    kept, missing, each = list[tuple[int, Operation]](), set[str](), lacking(trace, adapter)
    for number, op in enumerate(trace.ops):
        also = ["left out"] if number in out else []
        parts = islice(each, len(parts_of(op)))
        left = [part for part, lacks in parts if not _missing(part, [*lacks, *also], missing)]
        if left:
            kept += [(number, {**op, "ops": left})] if op["op"] == RUN.name else [(number, left[0])]
    return kept


def _missing(op: Operation, lacks: list[str], missing: set[str]) -> bool:
    """Tell whether an operation is to be left out; note the names that it would have made."""
    out = bool(lacks or missing & {cache_of(op), *names_used(op), *caches_named(op)})
    (missing.update if out else missing.difference_update)(names_made(op))
    return out


def names_made(op: Operation) -> set[str]:
    """Give the names that an operation makes; for `open` the cache's."""
    return {cache_of(op)} if op["op"] == OPEN.name else {op[a] for a in OPERATIONS[op["op"]].makes}


def lacking(trace: Trace, adapter: Description) -> Iterator[tuple[Operation, list[str]]]:
    """Give each operation of a trace, those of runs once each, and the abilities it takes that the adapter does not
    claim."""
    caches = {"A": (trace.kind, trace.config)}
    for part in (part for op in trace.ops for part in parts_of(op)):
        if part["op"] == OPEN.name:
            caches[cache_of(part)] = opening(trace, part)
        kind, config = caches[cache_of(part)]
        yield part, [*adapter.lacks(needed(part, kind, config)), *_outside(part, adapter, config)]


def _outside(op: Operation, adapter: Description, config: Config) -> list[str]:
    """Tell which windows, heads and widths of a config lie outside the limits. A config that no cache accepts is
    refused whatever the limits are."""
    if op["op"] != OPEN.name or not valid(config):
        return []
    narrow = config.window is not None and config.window < adapter.least_window
    windows = [f"a window of {config.window}"] if narrow else []
    rows = [f"{config.kv_heads} heads of {config.k_dim} and {config.v_dim} elements"]
    form = [] if adapter.takes_form(config.form) else [f"the form {config.form}"]
    return [*windows, *form, *([] if adapter.takes_rows(config) else rows)]


def cut(trace: Trace, adapter: Description) -> Trace:
    """Cut a trace before the first operation that the adapter does not claim."""
    if adapter.complete:
        return trace
    each = lacking(trace, adapter)
    lacks = ([name for _, names in islice(each, len(parts_of(op))) for name in names] for op in trace.ops)
    able = trace.cut(sum(1 for _ in takewhile(lambda names: not names, lacks)))
    return able.cut(next((number for number, _, _ in _lacking_by_state(able, adapter)), len(able.ops)))


def _in_limits(trace: Trace, adapter: Description) -> bool:
    appends = (*APPENDS, "attend")
    ops = [part for op in trace.ops for part in parts_of(op)]
    rows = [op.get(name) or 0 for op in ops if op["op"] in appends for name in ("n", "values")]
    dtypes = {op["dtype"] for op in ops if op.get("dtype")} | {trace.config.dtype}
    batches = [trace.config.batch, *(op["batch"] for op in ops if op["op"] == "open" and op.get("batch"))]
    batches += [op["m"] for op in ops if op["op"] == "batch"]
    sizes = ((adapter.largest_append, max(rows, default=0)), (adapter.largest_batch, max(batches)))
    if valid(trace.config) and _outside(OPENS_A, adapter, trace.config):
        return False
    if adapter.lacks(needed_to_open(trace.kind, trace.config.changed(batch=1))):
        return False
    if adapter.most_rows is not None and _rows_given(trace) > adapter.most_rows:
        return False
    return dtypes <= set(adapter.dtypes) and all(limit is None or size <= limit for limit, size in sizes)


def _rows_given(trace: Trace) -> int:
    """Give the most rows that one cache is given, as if none were refused or taken back."""
    given = Counter[str]()
    for op in trace.ops:
        for part in parts_of(op):
            given[cache_of(part)] += _rows_taken(part) * length_of(op) // len(parts_of(op))
    return max(given.values(), default=0)


def _rows_taken(op: Operation) -> int:
    """Give the rows that an operation appends; of a block of unequal lengths its columns."""
    if "lengths" in op:
        return max(numbers_in(op["lengths"]), default=0)
    return max(0, op.get("n", 0)) if op["op"] in (*APPENDS, "attend") else 0


def shut_out(traces: Sequence[Trace], suiting: Sequence[Trace], chapter: str, adapter: Description) -> str:
    """Tell what the adapter does not claim, if that left nothing of the traces of a check, or no operation of its
    chapter; else nothing. `suiting`: the traces as they were fitted to it."""
    about = {o.name for o in RECORDS[chapter].operations} if chapter in RECORDS else set()
    given, left = (
        {part["op"] for t in each for op in t.ops for part in parts_of(op)} for each in (traces, suiting)
    )
    if not traces or (suiting and (left & about or not given & about)):
        return ""
    lacks = [names for trace in traces if (names := [*_chapters(trace, adapter), *lacked(trace, adapter)])]
    return f"takes {_words(lacks)}" if lacks else "lies beyond the limits that the adapter declares"


def _chapters(trace: Trace, adapter: Description) -> list[str]:
    """The chapters of a trace that the adapter does not claim."""
    return sorted(used_chapters(trace) - set(adapter.chapters))


def _to_open(trace: Trace, adapter: Description) -> list[str]:
    """Give the abilities that opening takes and the adapter does not claim, once the trace was fitted to it."""
    return adapter.lacks(needed_to_open(trace.kind, within(trace, adapter).config))


def beyond(clause: Clause, adapter: Description) -> str:
    """Tell why no worked example of the clause can be judged whole, at its level; empty if one can."""
    traces = [e.trace for e in clause.examples]
    if all(missing := [used_chapters(trace) - set(adapter.chapters) for trace in traces]):
        return f"what shows it takes {_words(missing)}, which the adapter does not declare"
    traces = [trace for trace, chapters in zip(traces, missing, strict=True) if not chapters]
    if all(low := [_below(clause.level, trace, adapter) for trace in traces]):
        return f"what shows it takes {_words(low)}, which the adapter claims at level visible"
    traces = [trace for trace, chapters in zip(traces, low, strict=True) if not chapters]
    if all(lacks := [lacked(trace, adapter) for trace in traces]):
        return f"it takes {_words(lacks)}, which the adapter does not claim"
    if any(_in_limits(trace, adapter) for trace in traces):
        return ""
    return "what shows it lies beyond the limits that the adapter declares"


def _below(level: str, trace: Trace, adapter: Description) -> set[str]:
    """The chapters of a trace that the adapter claims below a level."""
    used = {c for c in looked_at(trace) if c in adapter.chapters}
    return {c for c in used if LEVELS.index(adapter.chapters[c].level) < LEVELS.index(level)}


def lacked(trace: Trace, adapter: Description) -> list[str]:
    """Give all abilities that a trace takes and the adapter does not claim."""
    by_state = (name for _, names, _ in _lacking_by_state(trace, adapter) for name in names)
    return [*_to_open(trace, adapter), *(name for _, names in lacking(trace, adapter) for name in names), *by_state]


def _words(each: list[Any]) -> str:
    """The fewest of several names, in words."""
    fewest = min(each, key=len)
    return ", ".join(sorted(fewest) if isinstance(fewest, set | frozenset) else dict.fromkeys(fewest))
