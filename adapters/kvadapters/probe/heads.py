"""Chooses what heads ask, and what keys answer. Seen heads have queries of 0: all rows weigh the same. Distance
heads have constant ones, which RoPE turns.

Match heads show that the key and the value of a row belong to one token. Each content id has a code of eight signs,
which is in the keys of its rows. A query asks by the code of its token's partner. So each row
has a weight of its own, by the token that its key was made of. What is read with this weight must be the value of
this token. Codes lie in the slowest pairs of dimensions: RoPE hardly turns them, and no other head asks there."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from kvadapters.probe.architecture import Architecture
from kvadapters.probe.arrays import Array
from kvadapters.probe.eight_bits import eight_bits
from kvadapters.probe.layout import CONSTANT, HEAD_DIM, TOKEN, Layout
from kvadapters.probe.network import Rope

SEEN, DISTANCE, MATCH = range(3)
"""The heads of each kv head, in their order."""
PAIRS = ((1.0, 1.0, 0.5), (0.06, 0.5, 0.8), (0.001, 1.5, 0.8))
"""The pairs of dimensions that show distances: radians a position, the share of the score, and the phase at
distance 0. The slow one tells far from near, the fast one tells neighbours apart."""
AMPLITUDE = sum(share for _, share, _ in PAIRS)
SIGNS, SEED = 8, 32
SLOW = 0.001
"""The pairs that hold a code turn by less than this, in radians a position."""


def projections(architecture: Architecture, layout: Layout, number: int, rope: Rope | None) -> tuple[Array, Array]:
    """Give a layer's queries and keys, [heads * 64, hidden] and [kv_heads * 64, hidden]. Latent rows have one key.
    Keys are the same for every token, but for its code where a probe matches keys."""
    query = np.zeros((layout.heads, HEAD_DIM, layout.hidden), np.float32)
    key = np.zeros((HEAD_DIM, layout.hidden), np.float32)
    constant, each = CONSTANT / layout.norm(number), layout.kv_heads * layout.group
    if rope:
        asked, kept = _distance(architecture, layout, rope)
        query[DISTANCE : each : layout.group, :, layout.constant] = [eight_bits(x / constant) for x in asked]
        key[:, layout.constant] = [eight_bits(x / constant) for x in kept]
    if layout.match:
        asked, kept = _match(architecture, layout, number, rope)
        query[MATCH : each : layout.group] = asked
        key += kept
    keys = key if architecture.latent else np.tile(key, (layout.kv_heads, 1))
    return query.reshape(-1, layout.hidden), keys


def gains(architecture: Architecture, layout: Layout) -> tuple[float, float]:
    """Give the gains of queries and keys that are normed before RoPE. A key that has a code too is larger, and its
    norm leaves each part less."""
    gain = AMPLITUDE / architecture.scale / HEAD_DIM
    return eight_bits(gain * 2**0.5) if layout.match else gain, 1.0


def _rest(architecture: Architecture, parts: int = 1) -> float:
    """Give what a norm behind RoPE would make too large, beside so many parts of a query or a key: it is taken by
    dimensions that do not meet."""
    return float((HEAD_DIM - parts * AMPLITUDE / architecture.scale) ** 0.5)


def _distance(architecture: Architecture, layout: Layout, rope: Rope) -> tuple[Array, Array]:
    """Give a distance head's query and key before RoPE, [64] each."""
    asked, kept = np.zeros(HEAD_DIM), np.zeros(HEAD_DIM)
    for frequency, share, phase in PAIRS:
        first, second = rope.pair(int(np.abs(np.log(rope.frequencies / frequency)).argmin()))
        length = (share / architecture.scale) ** 0.5
        kept[first], asked[first], asked[second] = length, length * math.cos(phase), length * math.sin(phase)
    if architecture.norms == "after":
        asked[rope.pair(1)[0]], kept[rope.pair(2)[0]] = _rest(architecture), _rest(architecture, 1 + layout.match)
    return asked, kept


def codes(ids: int) -> Array:
    """Give the code of each content id, [ids, 8]: all differ."""
    order = np.random.default_rng(SEED).permutation(1 << SIGNS)[:ids]
    signs: Array = (1 - 2 * (order[:, None] >> np.arange(SIGNS) & 1)).astype(np.float32)
    return signs


def partners(ids: int) -> NDArray[np.integer]:
    """Give the partner of each content id."""
    return np.random.default_rng(SEED + 1).permutation(ids)


def _match(architecture: Architecture, layout: Layout, number: int, rope: Rope | None) -> tuple[Array, Array]:
    """Give what makes a match head's query, and what is added to a key, [64, hidden] each."""
    asked, kept = np.zeros((2, HEAD_DIM, layout.hidden), np.float32)
    length, turned = (AMPLITUDE / SIGNS / architecture.scale) ** 0.5, rope or Rope(1.0, HEAD_DIM)
    last = turned.dims // 2
    at = [dimension for pair in range(last - SIGNS // 2, last) for dimension in turned.pair(pair)]
    kept[at, : layout.ids] = eight_bits(length * layout.norm(number) / TOKEN) * codes(layout.ids).T
    asked[at, : layout.ids] = kept[at][:, partners(layout.ids)]
    if rope and architecture.norms == "after":
        asked[rope.pair(1)[0], layout.constant] = eight_bits(_rest(architecture) * layout.norm(number) / CONSTANT)
    return asked, kept
