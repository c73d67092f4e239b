"""Clauses that a difference fails only under a condition. Rows lost bits, an operation changed what it must leave,
or a wrong size does not follow from wrong rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from kvconform.judge.storage import ROWS, SEEN, Difference
from kvspec.reading.clauses import index
from kvspec.registry import KINDS, opened
from kvspec.rows.book import SerialBook
from kvspec.session.step import Step

BITS = frozenset((*(opened(kind).bits for kind in KINDS), "COPY-11")) - {""}
"""Clauses that say that rows are kept bit for bit."""

OTHERS = frozenset(("BATCH-12", "PAGE-18", "COPY-9"))
"""Clauses that say what an operation leaves as it was: other sequences, other slots."""

HOW_MANY = frozenset(("COPY-7",))
"""Clauses that say how many rows are written: too many are written over other slots."""

MEMORY = frozenset(("capacity", "held", "plan", "fit", "bytes"))
"""Observables that are sizes of memory: where rows are wrong, these follow."""

NEVER_AT_FAULT = {
    "past": ("MASK-2", "LAYER-8"),
    "future": ("MASK-4", "MASK-8", "LAYER-8"),
    "kept": ("LAYER-8",),
}
"""Clauses on what is seen, by what cannot break them. A row of the past may be seen besides, or one of the future.
Or a row is missing that the append keeps."""

Steps = Sequence[tuple[Step, Step]]
Out = Callable[[str], bool]
"""Whether a clause is left out."""


def at_fault(
    clauses: tuple[str, ...], steps: Steps, differences: Sequence[Difference], book: SerialBook
) -> tuple[str, ...]:
    """Give the clauses that the differences of the last step can fail; all of them if none can."""
    left = clauses
    for about, leave_out in CONDITIONS:
        if len(left) > 1 and (about is None or about & set(left)):
            out = leave_out(steps, differences, book)
            left = tuple(c for c in left if not out(c)) or left
    return left


def _of_bits(steps: Steps, differences: Sequence[Difference], book: SerialBook) -> Out:
    """Where each row that was found is one that was handed in, it is the wrong row, and its bits are right."""
    arrays = ((n, a) for n, a in steps[-1][1].arrays.items() if n.endswith((".k", ".v")))
    lost = any(book.lost(a, name[-1]) for name, a in arrays if a is not None and a.ndim == 4)
    return lambda clause: clause in BITS and not lost


def _of_others(steps: Steps, differences: Sequence[Difference], book: SerialBook) -> Out:
    """What differs elsewhere only is the fault of no clause on what the operation does; and the other way round."""
    elsewhere = {other for d in differences if d.name for other in _places(d.name, steps)}
    alone = len(elsewhere) == 1
    return lambda clause: alone and clause not in HOW_MANY and (clause in OTHERS) != (elsewhere == {True})


def _places(name: str, steps: Steps) -> Iterator[bool]:
    """For what differs of an observable, whether the operation should have left it as it was."""
    (want, got), before = steps[-1], steps[-2][0] if len(steps) > 1 else Step()
    for side in ("rows", "values"):
        there, was, now = (getattr(s, side, {}).get(name) for s in (want, before, got))
        if isinstance(there, list) and isinstance(now, list) and side == "values":
            yield from (a == b for a, b, c in zip(there, was or (), now, strict=False) if a != c)
        elif there is not None:
            yield there == was
    if (array := want.arrays.get(name)) is not None:
        several = name.count(".") > 1  # an array for each sequence
        yield from _slots(array, before.arrays.get(name), None if several else got.arrays.get(name))


def _slots(want: Any, was: Any, got: Any) -> Iterator[bool]:
    """For each slot `[B, H, n, dim]` that differs, whether it should have stayed as it was."""
    if got is None or want.shape != got.shape or want.ndim != 4:
        yield was is not None and want.shape == was.shape and want.tobytes() == was.tobytes()
        return
    differs = np.flatnonzero([want[:, :, i].tobytes() != got[:, :, i].tobytes() for i in range(want.shape[2])])
    for i in differs:
        yield was is not None and i < was.shape[2] and want[:, :, i].tobytes() == was[:, :, i].tobytes()


def _of_memory(steps: Steps, differences: Sequence[Difference], book: SerialBook) -> Out:
    """Where rows are wrong, sizes of memory follow."""
    wrong = bool({d.field for d in differences} & ROWS)
    return lambda clause: wrong and clause in index() and set(index()[clause].seen_in) <= MEMORY


def _of_masks(steps: Steps, differences: Sequence[Difference], book: SerialBook) -> Out:
    """Rows of the past that are seen besides are the window's fault, and rows of the future the fault of `causal`.
    A missing row that was to be kept is not the fault of what appends drop."""
    found = {d.name for d in differences} & {*NEVER_AT_FAULT}
    return lambda clause: len(found) == 1 and clause in NEVER_AT_FAULT[next(iter(found))]


def _of_parts(steps: Steps, differences: Sequence[Difference], book: SerialBook) -> Out:
    """What differs in some layers is no fault of the views of others."""
    spared = [d.spares for d in differences if d.field in SEEN]
    return lambda clause: bool(spared) and all(clause in each for each in spared)


CONDITIONS: tuple[tuple[frozenset[str] | None, Callable[[Steps, Sequence[Difference], SerialBook], Out]], ...] = (
    (BITS, _of_bits),
    (OTHERS, _of_others),
    (None, _of_memory),
    (None, _of_parts),
    (frozenset(c for each in NEVER_AT_FAULT.values() for c in each), _of_masks),
)
"""What leaves clauses out, and the clauses that it is about, or None for any."""


def of_operation(clauses: Sequence[str], chapters: set[str]) -> tuple[str, ...]:
    """The clauses on what an operation does, where that went wrong: not those on what is seen in passing."""
    return tuple(c for c in clauses if c in index() and index()[c].claimed(chapters))
