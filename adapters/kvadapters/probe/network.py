"""A small transformer in float64: what the logits of a probe must be.

One network serves all architectures. Their differences are data of a layer: norms of queries and keys, a norm
behind attention, learned sinks, latent rows, and how RoPE pairs dimensions. Linear layers are apart, in `linear`.
Feed-forward parts of a probe add zero and are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvadapters.probe.arrays import Array, Float64, Mask, Thin
from kvadapters.probe.layout import HEAD_DIM
from kvadapters.probe.linear import Linear
from kvadapters.probe.views import View

Positions = NDArray[np.integer]


@dataclass(frozen=True)
class Latent:
    """Latent rows: values are `up` [heads * dim, rank] times the normed latent."""

    up: Array

    @cached_property
    def thin(self) -> Thin:
        """The same, quick to multiply by."""
        return Thin(self.up)


@dataclass(frozen=True)
class Rope:
    """A rotation of `dims` dimensions. Pairs are neighbours, or dimension i and i + dims / 2."""

    theta: float
    dims: int
    neighbours: bool = False

    @property
    def frequencies(self) -> Float64:
        """Radians a position, for each pair."""
        return self.theta ** (-np.arange(0, self.dims, 2) / self.dims)

    def pair(self, number: int) -> tuple[int, int]:
        """Give the two dimensions that turn by a frequency."""
        return (2 * number, 2 * number + 1) if self.neighbours else (number, number + self.dims // 2)


@dataclass(frozen=True)
class Layer:
    """One layer's attention. `query` is [heads * d, hidden], `key` and `value` [kv_heads * d, hidden], `out`
    [hidden, heads * d]."""

    view: View
    query: Array
    key: Array
    value: Array
    out: Array
    scale: float
    rope: Rope | None
    gains: tuple[float, float] | None = None
    """Queries and keys are normed before RoPE, then multiplied by these."""
    normed_after: bool = False
    """Queries and keys are normed after RoPE, without a gain."""
    out_gain: float | None = None
    """What attention gives is normed and multiplied by this."""
    sink: float | None = None
    """The score of a learned sink, the same in all heads."""
    latent: Latent | None = None

    @cached_property
    def thin(self) -> tuple[Thin, Thin, Thin, Thin]:
        """The matrices of queries, keys, values and what attention gives, quick to multiply by."""
        return Thin(self.query), Thin(self.key), Thin(self.value), Thin(self.out)

    @cached_property
    def apart(self) -> tuple[Thin, Thin, NDArray[np.integer]]:
        """The matrices of queries and keys without heads that weigh as an earlier one does, and which of those left
        each head is."""
        hidden, wide = self.query.shape[1], self.rope.dims if self.rope else HEAD_DIM
        queries, keys = self.query.reshape(-1, wide, hidden), self.key.reshape(-1, wide, hidden)
        keys = np.repeat(keys, len(queries) // len(keys), axis=0)
        seen = dict[bytes, int]()
        pairs = [query.tobytes() + key.tobytes() for query, key in zip(queries, keys, strict=True)]
        which = np.array([seen.setdefault(pair, len(seen)) for pair in pairs])
        _, left = np.unique(which, return_index=True)
        return Thin(queries[left].reshape(-1, hidden)), Thin(keys[left].reshape(-1, hidden)), which


@dataclass(frozen=True)
class Network:
    """The whole: `embedding` [vocabulary, hidden], layers, `output` [vocabulary, hidden]."""

    heads: int
    kv_heads: int
    eps: float
    embedding: Array
    embedding_factor: float
    layers: Sequence[Layer | Linear]
    output: Array

    def hidden(self, tokens: Sequence[int], **faults: Any) -> Float64:
        """Give the hidden states before the last norm, float64 [n, hidden]; `faults` as in `states`."""
        return self.states(tokens, **faults)[-1]

    def states(
        self,
        tokens: Sequence[int],
        masks: dict[int, Mask] | None = None,
        positions: Sequence[int] | None = None,
        keys: dict[int, Float64] | None = None,
    ) -> list[Float64]:
        """Give the hidden states before each layer, and behind the last one. `masks` replaces what queries see in
        some layers, bool [n, n]. By the number of its block it replaces what a convolution holds. `positions`
        replaces those that RoPE uses, and `keys` the hidden states that some layers make keys of."""
        x = self.embedding[list(tokens)].astype(np.float64) * self.embedding_factor
        at = np.arange(len(tokens)) if positions is None else np.asarray(positions)
        return self.gone_on([x], masks or {}, at, keys)

    def gone_on(
        self,
        states: Sequence[Float64],
        masks: dict[int, Mask],
        at: Positions,
        keys: dict[int, Float64] | None = None,
    ) -> list[Float64]:
        """Give the states that are there, and those behind the layers from there on; `at` are the positions."""
        found = list(states)
        for number in range(len(states) - 1, len(self.layers)):
            layer, x = self.layers[number], found[-1]
            sees = masks.get(number, layer.view.sees(len(x)))
            if isinstance(layer, Linear):
                window = masks.get(layer.block, layer.window.sees(len(x)))
                found.append(x + layer.given(self._normed(x), sees, window, at, self.eps))
            else:
                found.append(x + self._attention(layer, x, sees, at, (keys or {}).get(number)))
        return found

    def logits(self, hidden: Float64) -> Float64:
        """Give the logits of hidden states, float64 [n, vocabulary]."""
        return self._normed(hidden) @ self.wide_output

    @property
    def attending(self) -> list[Layer]:
        """The layers that attend: of most architectures all."""
        return [layer for layer in self.layers if isinstance(layer, Layer)]

    @cached_property
    def wide_output(self) -> Float64:
        """The output in float64, [hidden, vocabulary]."""
        return np.ascontiguousarray(self.output.T, np.float64)

    def values(self, number: int, x: Float64) -> Float64:
        """Give a layer's values of hidden states, float64 [n, heads, d]: kv heads, or all heads of a latent
        layer."""
        layer = self.layers[number]
        if isinstance(layer, Linear):
            return layer.rows(self._normed(x)).reshape(len(x), self.kv_heads, -1)
        return self._values(layer, self._normed(x))

    def scores(self, number: int, x: Float64, head: int, distances: Positions) -> Float64:
        """Give the scores of a query and a key of the same hidden state, [hidden], at distances, in a layer that
        attends."""
        layer = self.layers[number]
        assert isinstance(layer, Layer)
        h, wide = self._normed(x[None]), layer.rope.dims if layer.rope else HEAD_DIM
        asked, kept = (part.of(h).reshape(-1, wide) for part in layer.thin[:2])
        queries = asked[[head]].repeat(len(distances), axis=0)
        query = self._turned(layer, queries, layer.gains and layer.gains[0], distances)[:, 0]
        key = self._turned(layer, kept[:1], layer.gains and layer.gains[1], np.zeros(1, int))[:, 0]
        scores: Float64 = (query * key).sum(-1) * layer.scale
        return scores

    def met(self, number: int, head: int, asked: Float64, kept: Float64, at: Positions, rows: Positions) -> Float64:
        """Give the scores of a head between queries and keys of hidden states, [queries, keys]. They stand at the
        positions `at` and `rows`."""
        layer = self.layers[number]
        assert isinstance(layer, Layer)
        gains = layer.gains or (None, None)
        query = self._turned(layer, layer.thin[0].of(self._normed(asked)), gains[0], at)[:, head]
        key = self._turned(layer, layer.thin[1].of(self._normed(kept)), gains[1], rows)[:, 0]
        scores: Float64 = query @ key.T * layer.scale
        return scores

    def _attention(
        self, layer: Layer, x: Float64, sees: Mask, at: Positions, keys: Float64 | None = None
    ) -> Float64:
        h, n = self._normed(x), len(x)
        asked, kept, which = layer.apart
        query = self._turned(layer, asked.of(h), layer.gains and layer.gains[0], at)
        key = self._turned(
            layer, kept.of(h if keys is None else self._normed(keys)), layer.gains and layer.gains[1], at
        )
        scores = query.transpose(1, 0, 2) @ key.transpose(1, 2, 0)
        weights = _softmax(np.where(sees, scores * layer.scale, -np.inf), layer.sink)[which]
        value = self._values(layer, h)
        value = np.repeat(value, len(which) // value.shape[1], axis=1)
        out = layer.thin[3].of((weights @ value.transpose(1, 0, 2)).transpose(1, 0, 2).reshape(n, -1))
        return out if layer.out_gain is None else self._normed(out) * layer.out_gain

    def _values(self, layer: Layer, h: Float64) -> Float64:
        rows = layer.thin[2].of(h)
        if layer.latent is None:
            return rows.reshape(len(h), self.kv_heads, -1)
        return layer.latent.thin.of(self._normed(rows)).reshape(len(h), self.heads, -1)

    def _turned(self, layer: Layer, rows: Float64, gain: float | None, at: Positions) -> Float64:
        """Norm and rotate queries or keys, [n, heads * d]. A latent layer has one key for all heads."""
        rows = rows.reshape(len(rows), -1, layer.rope.dims if layer.rope else HEAD_DIM)
        if gain is not None:
            rows = self._normed(rows) * gain
        if layer.rope:
            rows = _rotated(rows, layer.rope, at)
        return self._normed(rows) if layer.normed_after else rows

    def _normed(self, rows: Float64) -> Float64:
        normed: Float64 = rows / np.sqrt((rows**2).mean(-1, keepdims=True) + self.eps)
        return normed


def _rotated(rows: Float64, rope: Rope, at: Positions) -> Float64:
    """Turn each pair of dimensions by its angle."""
    angles = (at[:, None] * rope.frequencies)[:, None]
    first, second = _pairs(rope.dims, rope.neighbours)
    cos, sin = np.cos(angles), np.sin(angles)
    turned, a, b = np.empty_like(rows), rows[..., first], rows[..., second]
    turned[..., first] = a * cos - b * sin
    turned[..., second] = b * cos + a * sin
    return turned


def _pairs(dims: int, neighbours: bool) -> tuple[slice, slice]:
    if neighbours:
        return slice(0, None, 2), slice(1, None, 2)
    return slice(0, dims // 2), slice(dims // 2, None)


def _softmax(scores: Float64, sink: float | None) -> Float64:
    """Weigh rows by their scores, [..., n]; a sink takes its share. A query that sees nothing has weights of 0."""
    top = np.maximum(scores.max(-1, keepdims=True), -1e9 if sink is None else sink)
    parts = np.exp(scores - top)
    total = parts.sum(-1, keepdims=True) + (0.0 if sink is None else np.exp(sink - top))
    weights: Float64 = parts / np.where(total == 0, 1, total)
    return weights
