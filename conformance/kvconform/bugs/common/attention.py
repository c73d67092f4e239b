"""Common bugs: learned sinks and parts of the rows that weigh too much, too little, or in the wrong place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from kvconform.bugs.planting import planted
from kvref.abilities.attention import Answering, Seen
from kvref.arithmetic import scored_attention
from kvref.caches.store import Store
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


def _parts(queries: Array, held: Pair, seen: Seen, how: Attention) -> Iterator[tuple[Array, Array]]:
    """The output of each part, and the natural logarithm of the sum of its weights, minus infinity for none. It
    knows of no sinks and no splits."""
    asked = seen.asked(*queries.shape[:3]).added
    with np.errstate(all="ignore"):
        bare = scored_attention.scores(np.asarray(queries), np.asarray(held.keys), how)
        scores = np.where(asked == -np.inf, -np.inf, bare + asked)
        values = np.asarray(held.values, np.float64).repeat(queries.shape[1] // held.values.shape[1], 1)
        for begin, end in pairwise((0, *how.parts, seen.rows)):
            part = scores[..., begin:end]
            most = part.max(-1, keepdims=True, initial=-np.inf)
            weights = np.where(part == -np.inf, 0.0, np.exp(part - most))
            total = weights.sum(-1, keepdims=True)
            output = weights @ values[:, :, begin:end] / np.where(total == 0, 1.0, total)
            yield output, np.where(total == 0, -np.inf, most + np.log(total))


def _joined(parts: Iterable[tuple[Array, Array]]) -> Array:
    """The parts joined by their logarithms, as an engine joins them that gets minus infinity for no rows."""
    outputs, logs = (np.stack(each) for each in zip(*parts, strict=True))
    with np.errstate(all="ignore"):
        weights = np.exp(logs - logs.max(0))
        return np.asarray((weights * outputs).sum(0) / weights.sum(0), np.float32)


class Joining(Answering):
    """Parts are joined in another way. What has no parts, or has sinks, is as it was."""

    def scored(self, queries: Array, held: Pair, seen: Seen, how: Attention) -> Array:
        if not how.parts or how.sinks is not None:
            return super().scored(queries, held, seen, how)
        with np.errstate(all="ignore"):
            return self.join(list(_parts(queries, held, seen, how)))

    def join(self, parts: list[tuple[Array, Array]]) -> Array:
        """The output of parts `[B, heads, L, v_dim]`, each with its logarithm `[B, heads, L, 1]`."""
        raise NotImplementedError


@planted("wrong-weight", breaks="ATTN-62")
class LogarithmToBase2(Joining):
    """A part gives the logarithm of its sum to base 2, and the join takes it for one to base e."""

    def join(self, parts: list[tuple[Array, Array]]) -> Array:
        found = _joined((output, log / np.log(2)) for output, log in parts)
        return np.where(np.isnan(found), np.float32(0), found)


@planted("wrong-weight", breaks="ATTN-62")
class MeanOfTheParts(Joining):
    """Parts that see a row count alike, however much their rows weigh."""

    def join(self, parts: list[tuple[Array, Array]]) -> Array:
        found = _joined((output, np.where(log == -np.inf, log, 0.0)) for output, log in parts)
        return np.where(np.isnan(found), np.float32(0), found)


@planted("wrong-weight", breaks="ATTN-62")
class LastPartIsLeftOut(Joining):
    """Where there are several parts, the join stops one too early."""

    def join(self, parts: list[tuple[Array, Array]]) -> Array:
        found = _joined(parts[:-1])
        return np.where(np.isnan(found), np.float32(0), found)


@planted("wrong-weight", breaks="ATTN-63")
class NothingLessNothing(Joining):
    """Where the first part sees nothing, minus infinity less minus infinity makes its weight NaN."""

    def join(self, parts: list[tuple[Array, Array]]) -> Array:
        whole, log = parts[0]
        for output, more in parts[1:]:
            most = np.maximum(log, more)
            mine, its = np.exp(log - most), np.exp(more - most)
            whole, log = (mine * whole + its * output) / (mine + its), most + np.log(mine + its)
        return np.asarray(whole, np.float32)


@planted("wrong-weight", breaks="ATTN-63")
class EmptyPartsWeighOne(Joining):
    """A part without rows gives 0 for its logarithm, so that its zeros have the weight of one row."""

    def join(self, parts: list[tuple[Array, Array]]) -> Array:
        return _joined((output, np.where(log == -np.inf, 0.0, log)) for output, log in parts)


@planted("wrong-weight", breaks="ATTN-62")
class SinkInEachPart(Answering):
    """Each part adds the learned sinks to its own sum."""

    def scored(self, queries: Array, held: Pair, seen: Seen, how: Attention) -> Array:
        if how.sinks is None or not how.parts:
            return super().scored(queries, held, seen, how)
        often = (z + float(np.log(len(how.parts) + 1)) for z in how.sinks)
        return super().scored(queries, held, seen, _sunk(how, *often))
