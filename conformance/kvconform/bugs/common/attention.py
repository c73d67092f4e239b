"""Common bugs: learned sinks that weigh too much, too little, or in the wrong place."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvconform.bugs.planting import planted
from kvref.attention import Answering, Seen
from kvref.store import Store
from kvspec.contract import Attention, Pair
from kvspec.geometry import Array
from kvspec.masks import Explicit


def _sunk(how: Attention, *sinks: float) -> Attention:
    """The same with other sinks."""
    return how._replace(sinks=sinks)


@planted("wrong-weight", breaks="ATTN-53")
class ForgetsTheSinks(Answering):
    """Learned sinks are taken and not used."""

    def scored(self, queries: Array, held: Pair, seen: Seen, how: Attention) -> Array:
        return super().scored(queries, held, seen, how._replace(sinks=None))


@planted("wrong-weight", breaks="ATTN-53")
class AddsToEveryScore(Answering):
    """The sink of a head is added to the scores of all its rows, as a bias."""

    def scored(self, queries: Array, held: Pair, seen: Seen, how: Attention) -> Array:
        if how.sinks is None:
            return super().scored(queries, held, seen, how)
        bias = np.array(how.sinks, np.float32)[None, :, None, None]
        biased = Seen((*seen.logical, Explicit(np.repeat(bias, queries.shape[2], 2))), seen.rows, seen.end)
        return super().scored(queries, held, biased, how._replace(sinks=None))


@planted("wrong-weight", breaks="ATTN-53")
class SoftmaxPlusOne(Answering):
    """Every sink is taken for 0, so that 1 is added to the sum of the weights."""

    def scored(self, queries: Array, held: Pair, seen: Seen, how: Attention) -> Array:
        zeros = None if how.sinks is None else (0.0,) * len(how.sinks)
        return super().scored(queries, held, seen, how._replace(sinks=zeros))


@planted("wrong-weight", breaks="ATTN-54")
class ScalesTheSink(Answering):
    """The sink is taken for a product of query and key, and multiplied by the scale."""

    def scored(self, queries: Array, held: Pair, seen: Seen, how: Attention) -> Array:
        if how.sinks is None or how.scale is None:
            return super().scored(queries, held, seen, how)
        return super().scored(queries, held, seen, _sunk(how, *(z * how.scale for z in how.sinks)))


@planted("wrong-weight", breaks="ATTN-54")
class CapsTheSink(Answering):
    """The softcap is on the sink, too."""

    def scored(self, queries: Array, held: Pair, seen: Seen, how: Attention) -> Array:
        if how.sinks is None or not how.softcap:
            return super().scored(queries, held, seen, how)
        capped = (float(how.softcap * np.tanh(z / how.softcap)) for z in how.sinks)
        return super().scored(queries, held, seen, _sunk(how, *capped))


@planted("wrong-mask", breaks="ATTN-54")
class OneColumnMore(Answering):
    """A boolean mask gets a column for the sink in front, and every row has the column of the one before."""

    def scored(self, queries: Array, held: Pair, seen: Seen, how: Attention) -> Array:
        wide = any(isinstance(p, Explicit) and p.array.shape[3] > 1 for p in seen.logical)
        if how.sinks is None or not wide:
            return super().scored(queries, held, seen, how)
        parts = (
            Explicit(np.roll(p.array, 1, 3)) if isinstance(p, Explicit) and p.array.dtype == bool else p
            for p in seen.logical
        )
        return super().scored(queries, held, Seen(tuple(parts), seen.rows, seen.end), how)


@planted("wrong-weight", breaks="ATTN-55")
class SinkOfTheGroup(Answering):
    """All query heads that read a kv head get the sink of the first of them."""

    def scored(self, queries: Array, held: Pair, seen: Seen, how: Attention) -> Array:
        if how.sinks is None:
            return super().scored(queries, held, seen, how)
        group = len(how.sinks) // held.keys.shape[1]
        firsts = (how.sinks[h // group * group] for h in range(len(how.sinks)))
        return super().scored(queries, held, seen, _sunk(how, *firsts))


@planted("wrong-weight", breaks="ATTN-56")
class SinkInEachSplit(Answering):
    """Each split of the tiles adds the sink to its own sum."""

    def scored(self, queries: Array, held: Pair, seen: Seen, how: Attention) -> Array:
        if how.sinks is None or how.splits == 1:
            return super().scored(queries, held, seen, how)
        splits = min(how.splits, -(-seen.rows // 32))
        often = (z + float(np.log(splits)) for z in how.sinks)
        return super().scored(queries, held, seen, _sunk(how, *often))


@planted("wrong-weight", breaks="ATTN-60")
class CapturesWithoutSinks(Store):
    """What is captured has no sinks: nobody told the graph of them."""

    def capture_attend(self, layer: int, heads: int, splits: int = 1, sinks: Any = None) -> Any:
        return super().capture_attend(layer, heads, splits)


@planted("wrong-weight", breaks="ATTN-60")
class BatchesWithoutSinks(Store):
    """An attend of a batch has no sinks: only the attend of one sequence got them."""

    def attend_batch(
        self, queries: Array, layer: int, splits: int = 1, out: Array | None = None, sinks: Any = None
    ) -> Array:
        return super().attend_batch(queries, layer, splits, out)
