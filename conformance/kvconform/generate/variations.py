"""Other forms of a trace that was drawn: performed while nobody looks, and with rows that are alike."""

from __future__ import annotations

from collections.abc import Iterator

from kvspec.masks import Explicit, from_json
from kvspec.operations.table import ARGUMENTS, RUN, Operation, argument, cache_of
from kvspec.registry import CACHES
from kvspec.trace import Trace, opening

LOOKS = ("view", "ask", "mask", "plan", "fit", "scribble", "positions", "gather", "peek", "fingerprint")
"""Operations that only look: an engine may do what it deferred because of them."""


def blind(trace: Trace) -> Trace:
    """The same trace in a run, without operations that only look; at its end every cache of one sequence takes a
    row and shows all it has."""
    ops = [op for op in trace.ops if op["op"] not in LOOKS and not _explicit(op)]
    if not ops:
        return trace
    run: Operation = {"op": RUN.name, "times": 1, "ops": ops}
    return Trace(trace.kind, trace.config, (run, *_ends(trace)))


def _explicit(op: Operation) -> bool:
    """Whether it attends through an explicit mask, whose width is that of a history which nobody saw."""
    return any(isinstance(part, Explicit) for part in from_json(op.get("through", [])))


def _ends(trace: Trace) -> Iterator[Operation]:
    """A row for each cache of one sequence, and a view."""
    kinds = {"A": trace.kind} | {cache_of(op): opening(trace, op)[0] for op in trace.ops if op["op"] == "open"}
    for letter in (letter for letter, kind in kinds.items() if kind in CACHES):
        of = {} if letter == "A" else {"cache": letter}
        yield from ({"op": "append", **of, "n": 1}, {"op": "view", **of})


def alike(trace: Trace) -> Trace:
    """The same trace with rows that are equal in all sequences and caches, and come again at other positions."""
    return Trace(trace.kind, trace.config, tuple(map(_alike, trace.ops)))


def _alike(op: Operation) -> Operation:
    fills = "fill" in ARGUMENTS[op["op"]] and argument(op, "fill") == "legible" and op.get("rope") is None
    return {**op, "fill": "alike"} if fills else op
