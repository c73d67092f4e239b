"""Appends as attends, for pools and batches that show outputs alone.

An engine may attend to its rows and hand out none of them. What an append did then shows in nothing but the next
output. So such an engine is asked to attend wherever a trace appends to a page, or feeds a block.

Where the padding of an engine always holds numbers, it is fed numbers there, so that no NaN lies beside rows to
which it attends later. Its rows hold numbers too.
"""

from __future__ import annotations

from kvspec.contract import Description
from kvspec.operations.table import OPEN, RUN, Operation, cache_of, parts_of
from kvspec.registry import LETTERS
from kvspec.trace import Trace, opening

PAGE, ATTENTION, RAGGED = LETTERS["PAGE"], LETTERS["ATTN"], LETTERS["RAGGED"]
ASKS = {PAGE: (ATTENTION, "attend"), RAGGED: (RAGGED, "attendblock")}
"""What a kind is asked by: the chapter and its operation."""

SAID = {
    "append": {"op", "cache", "n", "sequence", "fill", "input", "resident"},
    "feed": {"op", "cache", "lengths", "n", "batch", "beside", "fill"},
}
"""What an append, or a feed, says that can be an attend: rows that fit, which hold numbers."""

NO_NUMBERS = ("bits", "edges")
"""Fills that no output tells apart."""


def outputs_alone(adapter: Description, kind: str = PAGE) -> bool:
    """Tell whether nothing but outputs shows what the caches of a kind hold."""
    hides = kind in adapter.chapters and "state" not in adapter.observed((kind,))
    return hides and _asks(adapter, kind)


def _asks(adapter: Description, kind: str) -> bool:
    """Tell whether an adapter's caches of a kind attend."""
    chapter, operation = ASKS[kind]
    return chapter in adapter.chapters and adapter.able([(chapter, operation)])


def attending(trace: Trace, adapter: Description) -> tuple[Operation, ...]:
    """Give the operations of a trace as an engine that attends takes them. Attends take the place of appends where
    outputs alone are shown. Padding has numbers where the engine has no NaN."""
    alone = {kind for kind in ASKS if outputs_alone(adapter, kind)}
    numbers = RAGGED in adapter.chapters and _asks(adapter, RAGGED) and not adapter.able([(RAGGED, "nan")])
    if not alone and not numbers:
        return trace.ops
    kinds, ops = {"A": trace.kind}, list[Operation]()
    for op in trace.ops:
        if op["op"] == OPEN.name:
            kinds[cache_of(op)] = opening(trace, op)[0]
        ops.append(_taken(op, kinds, alone, numbers))
    asks = any(part["op"] == "attendblock" for op in ops for part in parts_of(op))
    return tuple(map(_in_numbers, ops)) if numbers and asks else tuple(ops)


def _in_numbers(op: Operation) -> Operation:
    """Give a feed whose rows hold numbers: a later attend multiplies by 0 what it does not see."""
    if op["op"] == RUN.name:
        return {**op, "ops": [_in_numbers(part) for part in op["ops"]]}
    if "lengths" not in op or op.get("fill") not in NO_NUMBERS:
        return op
    return {name: value for name, value in op.items() if name != "fill"}


def _taken(op: Operation, kinds: dict[str, str], alone: set[str], numbers: bool) -> Operation:
    if op["op"] == RUN.name:
        return {**op, "ops": [_taken(part, kinds, alone, numbers) for part in op["ops"]]}
    if numbers and "lengths" in op:
        op = {**op, "beside": "numbers"}
    kind = kinds.get(cache_of(op), "")
    return _attends(op, kind) if kind in alone else op


def _attends(op: Operation, kind: str) -> Operation:
    """Give the attend of the same rows; anything but an append of rows stays as it is."""
    rows = op["op"] == "feed" or (op["op"] == "append" and op["n"] > 0)
    if not rows or not set(op) <= SAID[op["op"]] or op.get("fill") in NO_NUMBERS:
        return op
    return {"fill": "legible", **op, "op": ASKS[kind][1]}
