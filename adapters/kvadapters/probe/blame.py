"""The clauses that an engine breaks whose answers are wrong behind a history: those on what its layers show, and on
the operations that the history needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kvadapters.probe.histories import Step
from kvadapters.probe.lives import Act
from kvadapters.probe.reader.reading import Judgement

SEEN_THROUGH = {
    "full": "LAYER-4",
    "window": "LAYER-5",
    "chunk": "LAYER-6",
    "linear": "LAYER-36",
    "conv": "LAYER-38",
}
"""The clause on what a query sees, by the view of its layer."""

OWED = {"rewind": "CACHE-8", "copy": "CACHE-14", "load": "LAYER-31", "shift": "SINK-39", "drop": "CACHE-14"}
"""The clause on the rows that an operation leaves, by the operation."""

BATCHED = "CACHE-13"
"""The clause on sequences that are computed together: each is as if it were alone."""


def clauses(history: Iterable[Step | Act], judgement: Judgement) -> tuple[str, ...]:
    """Give the clauses of the layers that are wrong, then those of what was done, in its order. A history that was
    made short has no act too many, so each is a part of the fault."""
    layers = (SEEN_THROUGH[reading.view.kind] for reading in judgement.wrong)
    return tuple(dict.fromkeys([*layers, *(clause for act in history for clause in _owed(act))]))


def _owed(act: Step | Act) -> Iterator[str]:
    if act.what in OWED:
        yield OWED[act.what]
    elif isinstance(act, Act) and len(act.of) > 1:
        yield BATCHED
