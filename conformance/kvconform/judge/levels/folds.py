"""Judging the states of layers that fold their tokens: numbers tell which rows went in, how often, in which order.

Legible rows are whole numbers. A sum of their products of at most 24 bits is a number of f32, however it is
computed. It is compared to the bit. Any other may be off by its roundings: one for each product and each addition.
A row of more than 32 tokens ago weighs less than any of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeGuard

import numpy as np

from kvconform.judge.storage import Difference
from kvconform.oracle.expected import Expected
from kvspec.geometry import Array
from kvspec.rows.book import SerialBook
from kvspec.rows.serials import ILLEGIBLE, letters
from kvspec.session.step import Step

BITS = 24
"""Digits of a number of f32."""

MOST_READ = 64
"""Rows that are tried, the newest ones, to tell what a wrong state is made of."""


class Fold(NamedTuple):
    """What a state should be, `[kv_heads, k_dim, v_dim]` in f64, and how far from it each number may be."""

    middle: Array
    bound: Array


def fold(serials: Sequence[int], book: SerialBook) -> Fold:
    """Fold rows in f64: each counts half of the next."""
    assert book.kept is not None
    if not serials:
        return Fold(np.zeros(()), np.zeros(()))
    keys, values = (
        np.stack([book.kept[s][part][0][book.own_heads] for s in serials]).astype(np.float64) for part in (0, 1)
    )
    weights = np.ldexp(1.0, -np.arange(len(serials))[::-1])
    with np.errstate(all="ignore"):
        middle, size = (np.einsum("t,thi,thj->hij", weights, f(keys), f(values)) for f in (np.positive, np.abs))
        whole = all(bool((a == np.rint(a)).all()) for a in (keys, values))
        exact = whole & (size < np.ldexp(1.0, BITS - (len(serials) - 1)))
        rounded = (min(len(serials), 32) + 2) * (np.ldexp(size, -BITS) + np.ldexp(1.0, -126))
    return Fold(middle, np.where(exact, 0.0, rounded))


def holds(state: Array | None, serials: Sequence[int], book: SerialBook) -> bool:
    """Whether a state is the fold of these rows. Numbers too large for f32 may be anything."""
    if not _is_state(state) or not {*serials} <= {*(book.kept or ())}:
        return False
    middle, bound = fold(serials, book)
    if middle.ndim and middle.shape != state.shape:
        return False
    with np.errstate(all="ignore"):
        near = np.abs(state - middle) <= bound
        same = (state == middle) | (np.isnan(middle) & np.isnan(state))
        large = np.isfinite(middle) & (np.abs(middle) + bound > np.finfo(np.float32).max)
    return bool((near | same | large).all())


def told(state: Array | None, said: Sequence[int], book: SerialBook) -> list[int] | None:
    """The rows that a state is made of: those that are said if it is their fold, else those that are read."""
    if state is None:
        return None
    return list(said) if holds(state, said, book) else [serial for serial, _ in reading(state, book)]


def differences(want: Expected, got: Step, book: SerialBook) -> Iterator[Difference]:
    """The states that are not the folds of their tokens."""
    for name, serials in want.folds.items():
        state = got.arrays.get(name)
        if not holds(state, serials, book):
            text = f"{name}: expected the fold of {_words(serials)}, found {_found(state, book)}"
            yield Difference(name.partition(".")[0], text, name=name)


def _is_state(state: Array | None) -> TypeGuard[Array]:
    return state is not None and state.ndim == 3 and state.dtype == np.float32


def _found(state: Array | None, book: SerialBook) -> str:
    if not _is_state(state):
        return "none" if state is None else f"{state.dtype}{list(state.shape)}"
    rows = (letters(serial) + (f"*{weight:g}" if weight else "") for serial, weight in reading(state, book))
    return " ".join(rows) or "zeros"


def _words(serials: Sequence[int]) -> str:
    return " ".join(map(letters, serials)) or "nothing"


def reading(state: Array, book: SerialBook) -> list[tuple[int, float]]:
    """Read which rows a state is made of, each with its weight, the lightest first. A state of no rows that can be
    told, or of too many, reads as one illegible row without weight."""
    if not state.any():
        return []
    tried = [s for s in sorted(book.kept or ()) if _fits(state, s, book)][-MOST_READ:]
    if not tried or not np.isfinite(state).all():
        return [(ILLEGIBLE, 0.0)]
    columns = np.stack([fold([s], book).middle.ravel() for s in tried], axis=1)
    weights = np.linalg.lstsq(columns, state.ravel().astype(np.float64), rcond=None)[0]
    off = np.abs(columns @ weights - state.ravel()).max()
    found = [(s, float(f"{w:.4g}")) for s, w in zip(tried, weights, strict=True) if abs(w) > 1e-6]
    return sorted(found, key=lambda each: each[1]) if off <= 1e-6 * np.abs(state).max() else [(ILLEGIBLE, 0.0)]


def _fits(state: Array, serial: int, book: SerialBook) -> bool:
    """Whether a row is of this geometry, and of finite numbers."""
    assert book.kept is not None
    keys, values = (rows[:, book.own_heads] for rows in book.kept[serial])
    return state.shape == (keys.shape[1], keys.shape[2], values.shape[2]) and bool(
        np.isfinite(keys.astype(np.float32)).all() and np.isfinite(values.astype(np.float32)).all()
    )
