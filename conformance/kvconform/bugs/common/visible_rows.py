"""Common bugs: rows that a query should not see, or should, and the scores by which it weighs them."""

from __future__ import annotations

import numpy as np

from kvconform.bugs.planting import planted
from kvref.abilities.attention import Answering, Seen
from kvref.arithmetic import scored_attention, strict_attention
from kvspec.contract import Attention, Pair
from kvspec.geometry import Array


def _bare(queries: Array, held: Pair, how: Attention) -> Array:
    """The scores without a softcap and a mask."""
    return scored_attention.scores(np.asarray(queries), np.asarray(held.keys), how._replace(softcap=0.0))


def _over_scores(scores: Array, queries: Array, held: Pair, seen: Seen, how: Attention) -> Array:
    """The outputs where these are the scores, after everything."""
    none = np.zeros(queries.shape), np.zeros(held.keys.shape)
    asked = seen.asked(*queries.shape[:3])._replace(added=scores)
    return strict_attention.attend(*none, np.asarray(held.values), seen.end - seen.rows, asked, how.splits)


@planted("wrong-mask", breaks="ATTN-40")
class CapsTheMask(Answering):
    """The softcap comes after the mask, so that what it hid has the score -c and returns."""

    def scored(self, queries: Array, held: Pair, seen: Seen, how: Attention) -> Array:
        if not how.softcap:
            return super().scored(queries, held, seen, how)
        mask, bare = seen.asked(*queries.shape[:3]).added, _bare(queries, held, how)
        with np.errstate(all="ignore"):
            masked = np.where(mask == -np.inf, -np.inf, bare + mask)
            added = scored_attention.capped(masked, how.softcap).astype(np.float32).astype(np.float64)
        return _over_scores(added, queries, held, seen, how)


@planted("wrong-weight", breaks="ATTN-38")
class ScalesTwice(Answering):
    """A scale that is given multiplies the queries, and then the scores as well."""

    def scored(self, queries: Array, held: Pair, seen: Seen, how: Attention) -> Array:
        twice = how if how.scale is None else how._replace(scale=how.scale**2)
        return super().scored(queries, held, seen, twice)


@planted("wrong-weight", breaks="ATTN-38")
class ScalesBesides(Answering):
    """A scale that is given comes on top of the square root of k_dim."""

    def scored(self, queries: Array, held: Pair, seen: Seen, how: Attention) -> Array:
        root = float(np.sqrt(queries.shape[3]))
        return super().scored(
            queries, held, seen, how._replace(scale=None if how.scale is None else how.scale / root)
        )


@planted("wrong-weight", breaks="ATTN-39")
class CapsBeforeItScales(Answering):
    """Products are capped first, and scaled after that."""

    def scored(self, queries: Array, held: Pair, seen: Seen, how: Attention) -> Array:
        scale = float(scored_attention.scale(how, queries.shape[3]))
        return super().scored(queries, held, seen, how._replace(softcap=how.softcap * scale))


@planted("wrong-weight", breaks="ATTN-39")
class CutsAtTheCap(Answering):
    """Scores above the softcap are cut off at it, and the others left as they are."""

    def scored(self, queries: Array, held: Pair, seen: Seen, how: Attention) -> Array:
        if not how.softcap:
            return super().scored(queries, held, seen, how)
        mask, bare = seen.asked(*queries.shape[:3]).added, _bare(queries, held, how)
        added = np.clip(bare, -how.softcap, how.softcap) + mask
        return _over_scores(added, queries, held, seen, how)


@planted("wrong-weight", breaks="ATTN-39")
class ForgetsTheCap(Answering):
    """A softcap is taken and not used."""

    def scored(self, queries: Array, held: Pair, seen: Seen, how: Attention) -> Array:
        return super().scored(queries, held, seen, how._replace(softcap=0.0))


@planted("wrong-weight", breaks="ATTN-39")
class NoneIsACap(Answering):
    """A softcap of 0 is taken for a cap where a scale is given: every score is 0."""

    def scored(self, queries: Array, held: Pair, seen: Seen, how: Attention) -> Array:
        return super().scored(queries if how.softcap else np.zeros_like(queries), held, seen, how)
