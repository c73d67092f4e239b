"""A history that is the whole buffer of a bounded cache: its spare slots are hidden, and weigh nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kvconform.judge.storage import Difference
from kvspec.geometry import Array
from kvspec.rows.book import SerialBook
from kvspec.rows.serials import ILLEGIBLE
from kvspec.session.step import Step

CLAUSE = "BOUNDED-15"

NONE: Array = np.zeros(0, np.bool_)
"""No slot of a history, whatever its length."""


def width(got: Step, room: int, held: int) -> Iterator[Difference]:
    """A history `[B, H, S, dim]` that is as long neither as the rows held nor as the buffer."""
    keys = got.arrays.get("history.k")
    if keys is not None and keys.ndim == 4 and keys.shape[2] not in (held, room):
        text = f"history has {keys.shape[2]} rows; expected the {held} held, or all {room} of the buffer"
        yield Difference("history", text, CLAUSE)


def spare(got: Step, room: int, held: int, masked: bool) -> Array:
    """Tell of each slot `[S]` of a history whether it is spare. A spare slot is hidden from every query by the
    mask or, where the cache makes no masks, lies behind the rows held. Empty if the history is not the whole
    buffer."""
    if _slots(got) != [room, room] or held == room:
        return NONE
    return hidden(got) if masked else np.arange(room) >= held


def hidden(got: Step) -> Array:
    """Tell of each slot `[S]` of a history whether its mask hides it from every query."""
    mask, slots = got.arrays.get("mask"), _slots(got)
    if mask is None or mask.ndim != 4 or slots != [mask.shape[3]] * 2:
        return NONE
    return np.asarray((~mask if mask.dtype == bool else np.isneginf(mask)).all((0, 1, 2)))


def _slots(got: Step) -> list[int]:
    arrays = (got.arrays.get(f"history.{kind}") for kind in "kv")
    return [-1 if a is None or a.ndim != 4 else int(a.shape[2]) for a in arrays]


def without(array: Array | None, hidden: Array) -> Array | None:
    """Give the rows `[B, H, n, dim]` in the slots that are not spare."""
    return array if array is None or not hidden.any() else array[:, :, ~hidden]


def with_spare(names: list[list[int]] | None, hidden: Array) -> list[list[int]] | None:
    """Give the names of all slots of each sequence, from those of the slots that are not spare."""
    if names is None or not hidden.any():
        return names
    every = np.full((len(names), len(hidden)), ILLEGIBLE)
    every[:, ~hidden] = np.array(names).reshape(len(names), -1)
    return [[int(serial) for serial in sequence] for sequence in every]


def not_finite(got: Step, hidden: Array, book: SerialBook) -> Iterator[Difference]:
    """A NaN or an infinity in a spare slot, where it is not that of a row that was appended."""
    for kind in "kv" if hidden.any() else "":
        rows = np.asarray(got.arrays[f"history.{kind}"])[:, :, hidden]
        wrong = ~np.isfinite(rows.astype(np.float32)).all(-1) & (book.read(rows, kind) < 0)
        if wrong.any():
            slot = np.flatnonzero(hidden)[np.argwhere(wrong)[0][2]]
            yield Difference("history", f"slot {slot} of the buffer has no row, and numbers not finite", CLAUSE)
            return
