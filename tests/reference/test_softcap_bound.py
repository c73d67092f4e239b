"""The bound of ATTN-44 with a scale and a softcap: a tanh in f32 is within it, and what is wrong is not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kvref.list_model.attention_bound import Scoring, weighed
from kvspec.geometry import Array
from support.engines.attention_engines import CASES, F32, Case, case

HOWS = (
    Scoring(scale=0.25, softcap=1.0),
    Scoring(softcap=30.0),
    Scoring(scale=4.0, softcap=50.0),
    Scoring(scale=0.25),
)
"""The ways in which scores are made."""

Scores = Callable[[Array, float, float], Array]
"""Gives scores of products, a scale and a softcap."""


def plain(products: Array, scale: float, cap: float) -> Array:
    """What anybody would write first."""
    scaled = products * F32(scale)
    return F32(cap) * np.tanh(scaled / F32(cap)) if cap else scaled


def by_exponentials(products: Array, scale: float, cap: float) -> Array:
    """The tanh as it stands in a kernel without one."""
    scaled = products * F32(scale)
    z = np.exp(-2 * np.abs(scaled) / F32(cap)) if cap else scaled
    return np.asarray(np.copysign(F32(cap) * ((1 - z) / (1 + z)), scaled) if cap else scaled, F32)


def scaled_twice(products: Array, scale: float, cap: float) -> Array:
    return plain(products, scale * scale, cap)


def capped_first(products: Array, scale: float, cap: float) -> Array:
    return plain(products, 1.0, cap) * F32(scale)


def clipped(products: Array, scale: float, cap: float) -> Array:
    scaled = products * F32(scale)
    return np.clip(scaled, F32(-cap), F32(cap)) if cap else scaled


def used(c: Case, how: Scoring, scores: Scores) -> float:
    """The largest share of its bound by which an element of the output is off, in f32; 0 where nothing is said."""
    scale = float(1 / np.sqrt(len(c.query))) if how.scale is None else how.scale
    with np.errstate(all="ignore"):
        found = scores(c.keys @ c.query, scale, how.softcap) + c.added
        weights = np.exp(found - found.max())
        output = weights @ c.values / weights.sum(dtype=F32)
        wide = (a.astype(np.float64) for a in (c.query, c.keys, c.values, c.added))
        middle, bound, _ = weighed(*wide, c.dtype, how=how)
        off = np.abs(output - middle)
        return float(np.where(np.isposinf(bound), 0, np.where(off == 0, 0, off / bound)).max())


@pytest.mark.parametrize("how", HOWS, ids=str)
@pytest.mark.parametrize("scores", [plain, by_exponentials], ids=lambda s: s.__name__)
def test_a_tanh_in_f32_is_within_it(scores: Scores, how: Scoring) -> None:
    assert max(used(case(*at), how, scores) for at in CASES) <= 1


@pytest.mark.parametrize(
    ("scores", "how"),
    [(scaled_twice, HOWS[3]), (capped_first, HOWS[0]), (clipped, HOWS[0])],
    ids=["scaled twice", "capped first", "clipped"],
)
def test_what_is_wrong_is_not(scores: Scores, how: Scoring) -> None:
    several = [c for seed in range(12) if len((c := case(seed, "plain", "f32")).keys) > 1]
    assert all(used(c, how, scores) > 1 for c in several)
