"""The float64 network leaves out what a probe has many of, zeros and heads that weigh alike, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kvadapters.probe.arrays import Float64, Thin
from kvadapters.probe.layout import HEAD_DIM
from kvadapters.probe.network import Layer, Network
from kvadapters.probe.views import FULL

HIDDEN, HEADS, KV_HEADS, TOKENS = 12, 4, 2, 7
DRAW = np.random.default_rng(3)


def drawn(*shape: int) -> Float64:
    return DRAW.normal(size=shape) / 4


def network(layer: Layer) -> Network:
    return Network(HEADS, KV_HEADS, 1e-6, drawn(5, HIDDEN), 1.0, [layer], drawn(5, HIDDEN))


def layer() -> Layer:
    query, key, value = (
        drawn(HEADS * HEAD_DIM, HIDDEN),
        drawn(KV_HEADS * HEAD_DIM, HIDDEN),
        drawn(KV_HEADS * 3, HIDDEN),
    )
    return Layer(FULL, query, key, value, drawn(HIDDEN, HEADS * 3), 0.3, None)


def one_by_one(layer: Layer, x: Float64) -> Float64:
    """What attention gives, head by head."""
    h = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
    given = []
    for head in range(HEADS):
        kv = head * KV_HEADS // HEADS
        query = h @ layer.query[head * HEAD_DIM :][:HEAD_DIM].T
        scores = np.exp(query @ (h @ layer.key[kv * HEAD_DIM :][:HEAD_DIM].T).T * layer.scale)
        scores = np.tril(scores)
        given.append(scores / scores.sum(-1, keepdims=True) @ (h @ layer.value[kv * 3 :][:3].T))
    return np.concatenate(given, -1) @ layer.out.T


def test_a_matrix_without_its_zeros_multiplies_as_the_whole_does() -> None:
    whole = np.zeros((6, 5))
    whole[0, 3], whole[2, 1], whole[3, [0, 4]], whole[5, :] = 2.5, -1, [1, 3], drawn(5)
    x = drawn(2, 3, 5)
    assert np.allclose(Thin(whole).of(x), x @ whole.T, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("alike", ["none", "queries", "queries of one key", "all"])
def test_heads_that_weigh_alike_are_computed_once_and_others_apart(alike: str) -> None:
    layer_ = layer()
    queries, keys = (m.reshape(-1, HEAD_DIM, HIDDEN).copy() for m in (layer_.query, layer_.key))
    if alike != "none":
        queries[1 if alike == "queries of one key" else 2] = queries[0]
    if alike == "all":
        queries[:], keys[:] = queries[0], keys[0]
    layer_ = replace(layer_, query=queries.reshape(-1, HIDDEN), key=keys.reshape(-1, HIDDEN))
    x = drawn(TOKENS, HIDDEN)
    found = network(layer_)._attention(layer_, x, FULL.sees(TOKENS), np.arange(TOKENS))
    assert len(set(layer_.apart[2])) == {"queries of one key": 3, "all": 1}.get(alike, HEADS)
    assert np.allclose(found, one_by_one(layer_, x), rtol=1e-12, atol=1e-12)
