"""Parts that are joined by the logarithms of their sums: within ATTN-44 if these are natural ones, else not."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from kvref.list_model.attention_bound import Scoring, weighed
from kvspec.geometry import Array

F32, DIM = np.float32, 16
CUTS = ((1,), (20,), (3, 17, 30), tuple(range(1, 40)))
LOUDNESS = (1.0, 8.0, 64.0)
"""What queries are multiplied by: the logarithm of a loud one's sum loses digits as it is rounded."""


def part(scores: Array, values: Array) -> tuple[Array, Array]:
    """The output of a part in f32, and the logarithm of the sum of its weights."""
    weights = np.exp(scores - scores.max())
    total = weights.sum(dtype=F32)
    return weights @ values / total, F32(scores.max() + np.log(total))


def used(seed: int, cuts: tuple[int, ...], loud: float, factor: float = 1.0) -> float:
    """The largest share of the bound by which an element is off, where logarithms are multiplied by a factor."""
    random = np.random.default_rng(seed)
    query = random.standard_normal(DIM, F32) * F32(loud)
    keys, values = (random.standard_normal((40, DIM), F32) for _ in "kv")
    scores, ends = keys @ query * F32(0.25), (0, *cuts, 40)
    parts = [part(scores[a:b], values[a:b]) for a, b in pairwise(ends)]
    logs = np.array([log for _, log in parts], F32) * F32(factor)
    weights = np.exp(logs - logs.max())
    output = sum(w * o for w, (o, _) in zip(weights, parts, strict=True)) / weights.sum(dtype=F32)
    wide = (a.astype(np.float64) for a in (query, keys, values))
    with np.errstate(all="ignore"):
        want = weighed(*wide, np.zeros((1, 40)), "f32", how=Scoring(parts=True))
    return float((np.abs(output - want.middle) / want.bound).max())


@pytest.mark.parametrize("loud", LOUDNESS)
@pytest.mark.parametrize("cuts", CUTS, ids=len)
def test_natural_logarithms_join_within_it(cuts: tuple[int, ...], loud: float) -> None:
    assert max(used(seed, cuts, loud) for seed in range(20)) <= 1


@pytest.mark.parametrize("cuts", CUTS, ids=len)
def test_logarithms_to_base_2_do_not(cuts: tuple[int, ...]) -> None:
    assert min(used(seed, cuts, 1.0, 1 / float(np.log(2))) for seed in range(20)) > 1
