"""A linear layer in float64: a gated delta rule behind a short convolution, as Qwen3-Next has it.

Its state holds the newest row of each key, and forgets by a factor a token; a probe's keys are token ids. So each
of its heads adds up rows with known weights, `exp(-decay * distance)`. Heads that show the state add the rows that
entered it and were not overwritten. Heads that show the convolution add the rows of its window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kvadapters.probe.arrays import Array, Float64, Mask, Thin
from kvadapters.probe.views import View


@dataclass(frozen=True)
class Head:
    """What a head shows, the state or the convolution's window, and by which weights."""

    state: bool
    decay: float
    """The logarithm of what a row's weight loses a token."""
    factor: float
    """The weight of a row at distance 0, before the head's norm."""


@dataclass(frozen=True)
class Linear:
    """One linear layer. `value` [row, hidden] makes rows like those of attention. `spread` [d, row] turns a row
    into what the state holds. `out` is [hidden, heads * d]."""

    view: View
    window: View
    """What the convolution holds."""
    block: int
    """The number of the block that shows it."""
    value: Array
    spread: Array
    out: Array
    heads: Sequence[Head]
    ids: int
    """Content ids: the first elements of a row tell its key."""
    gain: float
    """The factor behind each head's norm."""
    gate: float
    """What is multiplied by the constant to gate a head."""

    @cached_property
    def thin(self) -> tuple[Thin, Thin, Thin]:
        """The matrices of rows, of what the state holds, and of what the heads give, quick to multiply by."""
        return Thin(self.value), Thin(self.spread), Thin(self.out)

    def rows(self, h: Float64) -> Float64:
        """Give the rows of normed hidden states, float64 [n, row]."""
        return self.thin[0].of(h)

    def curve(self, distances: NDArray[np.integer], state: bool) -> Float64:
        """Give the logarithm of a row's weight at distances, beside that at distance 0, in the heads that show
        distances."""
        decay = max(head.decay for head in self.heads if head.state == state)
        return -decay * distances.astype(np.float64)

    def given(self, h: Float64, state: Mask, window: Mask, at: NDArray[np.integer], eps: float) -> Float64:
        """Give what is added to the hidden states. `state` [n, n] says which rows entered the state of each query,
        `window` which the convolution holds; `at` are positions. `h` is normed; its constant gates."""
        rows, distance = self.rows(h), at[:, None] - at
        held, entered = self.thin[1].of(rows), newest(state, rows[:, : self.ids].argmax(1))
        parts = [self._head(head, held, entered if head.state else window, distance, eps) for head in self.heads]
        gated = np.concatenate(parts, axis=1) * silu(self.gate * h[:, self.ids, None])
        return self.thin[2].of(gated)

    def _head(self, head: Head, held: Float64, mask: Mask, distance: NDArray[np.integer], eps: float) -> Float64:
        weights = np.exp(np.where(mask, -head.decay * distance, -np.inf)) * head.factor
        out = weights @ silu(held) if head.state else silu(weights @ held)
        normed: Float64 = out / np.sqrt((out**2).mean(-1, keepdims=True) + eps) * self.gain
        return normed


def newest(mask: Mask, keys: NDArray[np.integer]) -> Mask:
    """Leave of each query's rows the newest of each key: it has overwritten the others. bool [n, n]."""
    if len(set(keys.tolist())) == len(keys):
        return mask
    later = (keys[:, None] == keys) & (np.arange(len(keys))[:, None] > np.arange(len(keys)))
    overwritten = mask.astype(np.float32) @ later.astype(np.float32) > 0
    left: Mask = mask & ~overwritten
    return left


def silu(x: Float64) -> Float64:
    """Multiply by the logistic function."""
    found: Float64 = x / (1 + np.exp(-np.maximum(x, -700)))
    return found
