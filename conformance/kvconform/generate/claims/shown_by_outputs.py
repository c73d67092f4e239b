"""Appends as attends, for pools that show outputs alone.

An engine may attend to its pages and hand out none of their rows. What an append did then shows in nothing but the
next output. So such an engine is asked to attend wherever a trace appends.
"""

from __future__ import annotations

from kvspec.contract import Description
from kvspec.operations.table import OPEN, RUN, Operation, cache_of
from kvspec.registry import LETTERS
from kvspec.trace import Trace, opening

PAGE, ATTENTION = LETTERS["PAGE"], LETTERS["ATTN"]
SAID = {"op", "cache", "n", "sequence", "fill", "input", "resident"}
"""What an append says that can be an attend: rows that fit, which hold numbers."""

NO_NUMBERS = ("bits", "edges")
"""Fills that no output tells apart."""


def outputs_alone(adapter: Description) -> bool:
    """Tell whether nothing but outputs shows what the pages of an adapter hold."""
    hides = PAGE in adapter.chapters and "state" not in adapter.observed((PAGE,))
    return hides and ATTENTION in adapter.chapters and adapter.able([(ATTENTION, "attend")])


def attending(trace: Trace, adapter: Description) -> tuple[Operation, ...]:
    """Give the operations of a trace, with attends in the place of appends to pages, if outputs alone are shown."""
    if not outputs_alone(adapter):
        return trace.ops
    kinds, ops = {"A": trace.kind}, list[Operation]()
    for op in trace.ops:
        if op["op"] == OPEN.name:
            kinds[cache_of(op)] = opening(trace, op)[0]
        ops.append(_attends(op, kinds))
    return tuple(ops)


def _attends(op: Operation, kinds: dict[str, str]) -> Operation:
    """Give the attend of the same rows; anything but an append of rows to a page stays as it is."""
    if op["op"] == RUN.name:
        return {**op, "ops": [_attends(part, kinds) for part in op["ops"]]}
    pages = op["op"] == "append" and op["n"] > 0 and kinds.get(cache_of(op)) == PAGE
    if not pages or not set(op) <= SAID or op.get("fill") in NO_NUMBERS:
        return op
    return {"fill": "legible", **op, "op": "attend"}
