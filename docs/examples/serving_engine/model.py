"""The network: a Llama in float32, for the tokens of several sequences at once. Its rows lie in blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from serving_engine.blocks import Floats, Group, Rows, Slots
from serving_engine.checkpoint import read_adapters, read_config, read_tensors


@dataclass(frozen=True)
class Piece:
    """What one step computes of one sequence: `tokens` at positions from `start` on. `tables` has the blocks of its
    rows, for each group of layers. Logits are wanted of the last `answers` tokens. The network has the changes of
    an `adapter`. At some positions of the text `vectors` stand for the embeddings of tokens."""

    tokens: Sequence[int]
    start: int
    tables: Sequence[Sequence[int]]
    answers: int
    adapter: str = ""
    vectors: Mapping[int, Floats] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """The position behind the last token."""
        return self.start + len(self.tokens)

    def slots(self, group: int, size: int, start: int, end: int) -> Slots:
        """Give where the rows at positions `start` to `end` lie, in blocks of `size` rows."""
        at = np.arange(start, end)
        return np.asarray(self.tables[group], np.intp)[at // size] * size + at % size


class Model:
    """The network of a checkpoint."""

    def __init__(self, folder: Path) -> None:
        self.config, self.tensors = read_config(folder), read_tensors(folder)
        self.adapters = read_adapters(folder)
        self.vocabulary = len(self.tensors["lm_head.weight"])
        dims = self.config.head_dim
        self.frequencies = self.config.theta ** (-np.arange(0, dims, 2) / dims)
        self.cos, self.sin = self._turns(256)

    def groups(self) -> list[Group]:
        """Put layers that see the same into one group."""
        windows = self.config.windows
        return [
            Group(window, tuple(number for number, other in enumerate(windows) if other == window))
            for window in dict.fromkeys(windows)
        ]

    def forward(self, pieces: Sequence[Piece], rows: Rows) -> list[Floats]:
        """Compute a batch: write the rows of all its tokens, and give the logits that each piece wants, float32
        [answers, vocabulary]."""
        x = self._embedded(pieces)
        place = {number: (g, i) for g, group in enumerate(rows.groups) for i, number in enumerate(group.layers)}
        for number in range(len(self.config.windows)):
            x = self._layer(number, x, pieces, rows, *place[number])
        ends = np.cumsum([len(piece.tokens) for piece in pieces])
        wanted = [np.arange(end - piece.answers, end) for piece, end in zip(pieces, ends, strict=True)]
        x = self._normed(x[np.concatenate(wanted)], "model.norm.weight")
        logits = x @ self.tensors["lm_head.weight"].T
        return np.split(logits, np.cumsum([piece.answers for piece in pieces])[:-1])

    def _embedded(self, pieces: Sequence[Piece]) -> Floats:
        """Give the embeddings of a batch's tokens; where vectors were handed in, these."""
        x: Floats = self.tensors["model.embed_tokens.weight"][[token for piece in pieces for token in piece.tokens]]
        at = 0
        for piece in pieces:
            for position, vector in piece.vectors.items():
                if piece.start <= position < piece.end:
                    x[at + position - piece.start] = vector
            at += len(piece.tokens)
        return x

    def _layer(self, number: int, x: Floats, pieces: Sequence[Piece], rows: Rows, group: int, place: int) -> Floats:
        """Add what a layer's attention and its feed-forward part give to the hidden states, [tokens, hidden]."""
        name = f"model.layers.{number}"
        h = self._normed(x, f"{name}.input_layernorm.weight")
        at = np.concatenate([np.arange(piece.start, piece.end) for piece in pieces])
        queries = self._turned(f"{name}.self_attn.q", h, at)
        keys = self._turned(f"{name}.self_attn.k", h, at)
        values = h @ self.tensors[f"{name}.self_attn.v_proj.weight"].T
        values = self._changed(f"{name}.self_attn.v_proj.weight", h, values, pieces)
        slots = [piece.slots(group, rows.size, piece.start, piece.end) for piece in pieces]
        rows.write(place, np.concatenate(slots), keys.reshape(len(x), -1), values)
        cuts = np.cumsum([len(piece.tokens) for piece in pieces])[:-1]
        parts = zip(pieces, np.split(queries, cuts), strict=True)
        out: Floats = np.concatenate([self._attention(piece, part, rows, group, place) for piece, part in parts])
        x = x + out @ self.tensors[f"{name}.self_attn.o_proj.weight"].T
        return x + self._feed_forward(f"{name}.mlp", self._normed(x, f"{name}.post_attention_layernorm.weight"))

    def _changed(self, name: str, h: Floats, given: Floats, pieces: Sequence[Piece]) -> Floats:
        """Add to what a tensor gives what the adapter of each piece adds."""
        at = 0
        for piece in pieces:
            end = at + len(piece.tokens)
            if change := self.adapters.get(piece.adapter, {}).get(name):
                given[at:end] += h[at:end] @ change.down.T @ change.up.T
            at = end
        return given

    def _attention(self, piece: Piece, queries: Floats, rows: Rows, group: int, place: int) -> Floats:
        """Attend from queries of one sequence, [n, heads, d], to the rows that they see; give [n, heads * d]."""
        first = rows.groups[group].first(piece.start)
        keys, values = self._read(rows, place, piece.slots(group, rows.size, first, piece.end))
        queries = queries.reshape(len(queries), self.config.kv_heads, -1, self.config.head_dim)
        scores: Floats = queries.transpose(1, 2, 0, 3) @ keys.transpose(1, 2, 0)[:, None]
        sees = self._sees(piece, first, rows.groups[group])
        weights = softmax(np.where(sees, scores * np.float32(self.config.head_dim**-0.5), np.float32(-np.inf)))
        out: Floats = weights @ values.transpose(1, 0, 2)[:, None]
        return out.transpose(2, 0, 1, 3).reshape(len(queries), -1)

    def _read(self, rows: Rows, place: int, slots: Slots) -> tuple[Floats, Floats]:
        """Read rows as [n, kv_heads, d]."""
        keys, values = rows.read(place, slots)
        shape = len(slots), self.config.kv_heads, self.config.head_dim
        return keys.reshape(shape), values.reshape(shape)

    def _sees(self, piece: Piece, first: int, group: Group) -> NDArray[np.bool_]:
        """Say which rows, from `first` on, each query of a piece sees: [queries, rows]."""
        query, row = np.arange(piece.start, piece.end)[:, None], np.arange(first, piece.end)[None]
        causal: NDArray[np.bool_] = row <= query
        return causal if group.window is None else causal & (query - row < group.window)

    def _turned(self, name: str, h: Floats, at: NDArray[np.intp]) -> Floats:
        """Project queries or keys, norm them where the architecture does so, and turn them by RoPE: [n, heads, d].
        Dimension i turns with dimension i + d / 2."""
        x = (h @ self.tensors[f"{name}_proj.weight"].T).reshape(len(h), -1, self.config.head_dim)
        if f"{name}_norm.weight" in self.tensors:
            x = self._normed(x, f"{name}_norm.weight")
        if at.max() >= len(self.cos):
            self.cos, self.sin = self._turns(2 * int(at.max()))
        half = self.config.head_dim // 2
        a, b, cos, sin = x[..., :half], x[..., half:], self.cos[at], self.sin[at]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)

    def _turns(self, positions: int) -> tuple[Floats, Floats]:
        """Give the cosines and sines by which RoPE turns rows at the first positions: [positions, 1, d / 2]."""
        angles = (np.arange(positions)[:, None] * self.frequencies)[:, None]
        return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)

    def _normed(self, x: Floats, name: str) -> Floats:
        eps = np.float32(self.config.eps)
        normed: Floats = x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * self.tensors[name]
        return normed

    def _feed_forward(self, name: str, h: Floats) -> Floats:
        gate, up, down = (self.tensors[f"{name}.{part}_proj.weight"] for part in ("gate", "up", "down"))
        gated = h @ gate.T
        added: Floats = (gated / (1 + np.exp(-gated)) * (h @ up.T)) @ down.T
        return added


def softmax(scores: Floats) -> Floats:
    """Weigh rows by their scores, over the last dimension."""
    parts: Floats = np.exp(scores - scores.max(-1, keepdims=True))
    weights: Floats = parts / parts.sum(-1, keepdims=True)
    return weights
