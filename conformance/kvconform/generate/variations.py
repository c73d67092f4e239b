"""Other forms of a trace that was drawn: performed while nobody looks, and with rows that are alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from kvconform.generate.amounts import ALIKE, BLIND
from kvconform.generate.fit_to_adapter import fitted
from kvspec.contract import Description
from kvspec.masks import Explicit, from_json
from kvspec.operations.table import ARGUMENTS, RUN, Operation, argument, cache_of
from kvspec.registry import CACHES
from kvspec.trace import Trace, looked_at, opening

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


@dataclass(frozen=True)
class Variation:
    """A form that traces are judged in beside the one that they were drawn in."""

    name: str
    """What the record of a run and the matrix of mutants call the source."""
    of: Callable[[Trace], Trace]
    share: int
    """One trace in this many is judged in this form."""
    level: str = ""
    """The only level at which it tells something; empty for any."""

    def some(self, traces: Sequence[Trace]) -> Iterator[Trace]:
        """Give this form of a share of the traces."""
        return map(self.of, traces[:: self.share])

    def suiting(self, traces: Iterable[Trace], adapter: Description) -> Iterator[Trace]:
        """Fit traces of this form to an adapter; leave out those that would tell nothing of it."""
        return (t for t in fitted(traces, adapter) if self.level in ("", adapter.lowest(looked_at(t))))


VARIATIONS = (Variation("blind", blind, BLIND), Variation("alike", alike, ALIKE, "storage"))
"""The forms. At level visible nothing tells which of two equal rows was read."""
