"""Latent rows attended to in both ways, at the geometry of DeepSeek-V3: how far the ways are apart, and may be.

The absorbed way attends to the rows as a cache shows them, with queries that a head's matrix multiplied. The
plain way makes keys and values of each head from them, and attends to these by strict attention. Products with
matrices are made in f64 and rounded once. So a query is off by u of itself, keys and values by u of themselves: the
bound of either way is that of ATTN-44 with scores that may be off by as much; values that are off move a mean by no
more than the largest of them is off. An output of the absorbed way and its bound are multiplied by a matrix and its
magnitudes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kvadapters.reference import Reference
from kvref.abilities import rope
from kvref.list_model.attention_bound import Scoring, weighed
from kvref.list_model.rows import U
from kvspec.contract import Attention
from kvspec.contract.attention import Rope
from kvspec.geometry import DTYPES, Array, Config
from support.bounds import Used, used

HEADS, LATENT, REST, OWN = 128, 512, 64, 128
"""Query heads, elements of a latent, of the rest that RoPE turns, and of a head's own keys and values."""

SCALE = float(np.float32(1 / np.sqrt(OWN + REST)))
"""What products are multiplied by: of the width of a plain key."""


class Model(NamedTuple):
    """A layer: the matrices `[HEADS, OWN, LATENT]` that make keys and values of a latent, the queries of the newest
    row `[HEADS, OWN]` and `[HEADS, REST]`, and rows `[1, 1, n, LATENT + REST]` of a dtype, turned but for the
    newest."""

    to_keys: Array
    to_values: Array
    queries: Array
    turned: Array
    rows: Array
    dtype: str

    @property
    def absorbed(self) -> Array:
        """The queries as they are handed in the absorbed way, `[1, HEADS, 1, LATENT + REST]`, in f32."""
        latents = np.einsum("ho,hol->hl", self.queries.astype(np.float64), self.to_keys)
        return np.concatenate([latents, self.turned], -1).astype(np.float32)[None, :, None]


def model(rows: int, dtype: str, seed: int = 0) -> Model:
    """A layer with random matrices, and so many rows."""
    random = np.random.default_rng(seed)
    matrices = (random.standard_normal((HEADS, OWN, LATENT)) / np.sqrt(LATENT) for _ in "kv")
    queries, turned = (random.standard_normal((HEADS, n)).astype(np.float32) * np.float32(4) for n in (OWN, REST))
    made = random.standard_normal((1, 1, rows, LATENT + REST)).astype(np.float32)
    made[..., :-1, LATENT:] = rope.rotate(made[..., :-1, LATENT:], np.arange(rows - 1), Rope())
    return Model(*matrices, queries, turned, made.astype(DTYPES[dtype]), dtype)


def answered(adapter: Any, form: str, m: Model) -> tuple[Array, Array]:
    """What a growing cache of latent rows answers the newest query, `[HEADS, LATENT]`, and the rows that it
    shows."""
    config = Config(1, 1, LATENT + REST, LATENT, m.dtype, form=form)
    cache, values = adapter.open("growing", config), m.rows[..., :LATENT]
    cache.append(m.rows[:, :, :-1], values[:, :, :-1])
    how = Attention(scale=SCALE, rope=Rope())
    out = cache.attend(m.absorbed, m.rows[:, :, -1:], values[:, :, -1:], how)
    return np.asarray(out)[0, :, 0], np.asarray(cache.read("view").keys)[0, 0]


def apart(by: str, adapter: Any, form: str, m: Model, heads: int = HEADS) -> Used:
    """How far the outputs of the ways are apart, of what they may be, at the worst in so many heads."""
    found, rows = answered(adapter, form, m)
    asked = _turned(m.turned, np.array([m.rows.shape[2] - 1]))
    return max(_of_head(by, m, h, found[h], rows, asked[h]) for h in np.linspace(0, HEADS - 1, heads).astype(int))


def _turned(queries: Array, at: Array) -> Array:
    """The rests of queries `[HEADS, REST]`, turned."""
    return np.asarray(rope.rotate(queries[None, :, None], at, Rope()))[0, :, 0]


def _of_head(by: str, m: Model, h: int, found: Array, rows: Array, rest: Array) -> Used:
    wide = rows.astype(np.float64)
    query = np.concatenate([m.absorbed[0, h, 0, :LATENT], rest])
    _, bound = _within(query, wide, wide[:, :LATENT], m.dtype, np.abs(wide) @ np.abs(query) * U)
    absorbed = m.to_values[h] @ found.astype(np.float64)
    output, other = plain(m, h, wide, rest)
    return used(by, absorbed, output, np.abs(m.to_values[h]) @ bound + other)


def plain(m: Model, h: int, wide: Array, rest: Array) -> tuple[Array, Array]:
    """The output of a head in the plain way, by strict attention, and its bound, `[OWN]`."""
    made = np.concatenate([wide[:, :LATENT] @ m.to_keys[h].T, wide[:, LATENT:]], 1).astype(np.float32)
    values = (wide[:, :LATENT] @ m.to_values[h].T).astype(np.float32)
    query = np.concatenate([m.queries[h], rest])
    cache: Any = Reference().open("growing", Config(1, 1, OWN + REST, OWN, "f32"))
    cache.append(made[None, None, :-1], values[None, None, :-1])
    how = Attention(scale=SCALE)
    out = cache.attend(query[None, None, None], made[None, None, -1:], values[None, None, -1:], how)
    keys, values = made.astype(np.float64), values.astype(np.float64)
    _, bound = _within(query, keys, values, "f32", np.abs(keys) @ np.abs(query) * U)
    return np.asarray(out)[0, 0, 0], bound + U * np.abs(values).max(0)


def _within(query: Array, keys: Array, values: Array, dtype: str, off: Array) -> tuple[Array, Array]:
    """The exact output over f64 rows, and its bound where products may be off already."""
    none = np.zeros((1, len(keys)))
    return weighed(query.astype(np.float64), keys, values, none, dtype, off * SCALE, Scoring(SCALE))[:2]
