"""Reads a text's queries: from answers to what each query saw in each layer, and what is wrong with it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kvadapters.probe.arrays import Float64
from kvadapters.probe.checkpoint import Probe
from kvadapters.probe.layout import HEAD_DIM, Block
from kvadapters.probe.linear import Linear
from kvadapters.probe.network import Layer
from kvadapters.probe.reader import answers as forms
from kvadapters.probe.reader import common, prints, sets
from kvadapters.probe.reader.counts import Counts, counted
from kvadapters.probe.reader.distances import Distances
from kvadapters.probe.reader.expected import ExpectedLayer, expected
from kvadapters.probe.reader.matches import Matches
from kvadapters.probe.reader.precision import Precision
from kvadapters.probe.reader.reading import Finding, Judgement, Reading, Row
from kvadapters.probe.weights import BALLAST
from kvspec.errors import BadInput

DRIFT = 2.0**-8
"""How much the values of two rows may differ, because the norm before them depends on what was seen below."""


def read(
    probe: Probe,
    tokens: Sequence[int],
    answers: forms.Answers,
    precision: Precision | None = None,
    queries: Sequence[int] | None = None,
) -> Judgement:
    """Read what queries saw. `answers` are logits or logprobs [queries, vocabulary], or mappings of the ids that
    are known, one for each query; `queries` are their positions (the last of the text). Raises BadInput."""
    tokens, precision = probe.checked(tokens), precision or Precision()
    at = list(range(len(tokens) - len(answers), len(tokens))) if queries is None else list(queries)
    if len(at) != len(answers) or not at or not all(0 <= q < len(tokens) for q in at):
        raise BadInput(f"{len(answers)} answers for {len(at)} queries of a text of {len(tokens)} tokens")
    state = forms.state(probe, answers, precision)
    readings = list[Reading]()
    for block, layer in enumerate(expected(probe, tokens)):
        number, _ = probe.layout.blocks[block]
        sure = not any(reading.findings for reading in readings if reading.layer < number)
        one = _OneLayer(probe, tokens, precision, block, layer, sure)
        readings += [one.read(state.low[i], state.high[i], query) for i, query in enumerate(at)]
    return common.judged(Judgement(tokens, tuple(readings), tuple(probe.architecture.losses(probe.layout.layers))))


class _OneLayer:
    """Reads the queries of one block of a layer. `sure` says that nothing is wrong below the layer."""

    def __init__(
        self,
        probe: Probe,
        tokens: Sequence[int],
        precision: Precision,
        block: int,
        layer: ExpectedLayer,
        sure: bool,
    ) -> None:
        self.probe, self.tokens, self.precision = probe, tokens, precision
        self.expected, self.sure = layer, sure
        self.block: Block = probe.layout.block(block)
        self.number, self.view = probe.layout.blocks[block]
        self.linear = isinstance(probe.network.layers[self.number], Linear)
        self.where = defaultdict[int, list[int]](list)
        for position, token in enumerate(tokens):
            self.where[token].append(position)
        self.gains = self._gains()

    def _gains(self) -> Float64:
        """Give the element of each id's rows, [ids], which is almost 1. Set how much it may differ from that."""
        ids, tokens = self.probe.layout.ids, np.asarray(self.tokens)
        found = self.expected.rows[np.arange(len(tokens)), tokens]
        count = np.bincount(tokens, minlength=ids)
        least, most = np.full(ids, np.inf), np.full(ids, -np.inf)
        np.minimum.at(least, tokens, found)
        np.maximum.at(most, tokens, found)
        self.drift = np.where(count, most - least, 0.0) + DRIFT
        return np.where(count, np.bincount(tokens, found, ids) / np.maximum(count, 1), 1.0)

    def _sum(self, low: Float64, high: Float64, weights: Float64) -> float:
        """Give the sum of the weights. `weights`, [ids], are those of single ids as far as they are known."""
        total = (low[self.block.sums[0]] + high[self.block.sums[0]]) / 2 / self.probe.layout.ballast
        mean = float((weights * self.gains).sum() / weights.sum()) if weights.sum() > 0 else 1.0
        return float(total) / mean

    def read(self, low: Float64, high: Float64, query: int) -> Reading:
        """Read one query from the bounds of its hidden state, [used]."""
        blank = Reading(self.number, self.view, query)
        visible = self.expected.sees[query]
        likely = np.bincount(np.asarray(self.tokens)[visible], minlength=self.probe.layout.ids)
        low, high, coarse = self._widened(low, high, query)
        less, more = np.maximum(low[self.block.seen], 0) / self.gains, high[self.block.seen] / self.gains
        share = self._sum(low, high, less)
        if not np.isfinite(share) or share <= 0:
            return replace(blank, untold=("the sum of the weights is not among the answers",))
        less, more = less / share, more / share
        of_sum = self.precision.relative + coarse / max(share, coarse)
        drift = float(self.drift[less > 0].max(initial=DRIFT))
        spread = of_sum + self.drift + drift
        bounds = less / (1 + spread), more / (1 - np.minimum(spread, 0.9))
        counts = counted(*bounds, likely, 2 * len(self.tokens) + 64)
        blank = replace(blank, share=float(share), share_error=of_sum + drift)
        if counts is None:
            return self._unequal(blank, (less + more) / 2)
        reading = replace(
            blank,
            seen=counts.total if counts.told else None,
            rows=self._rows(counts, (less + more) / 2),
            findings=tuple(sets.compared(counts, likely, visible, query, self.where)),
            untold=tuple(sets.vague(counts, self.tokens)),
        )
        for part in (self._share, self._distances, self._matches, self._prints):
            reading = part(reading, low, high)
        return reading

    def _widened(self, low: Float64, high: Float64, query: int) -> tuple[Float64, Float64, float]:
        """Widen bounds by the error of the rows' form: a step times the sum of a head's row. Seen heads take its
        mean over rows. Distance heads take its maximum, because they prefer some rows. Give the bounds, and what
        is added to the sum of weights."""
        if not self.precision.step or self.linear:  # states have a form of their own
            return low, high, 0.0
        held = np.abs(self.expected.rows[self.expected.sees[query]])
        if self.probe.architecture.latent:
            held = np.repeat(held.sum(-1, keepdims=True) + BALLAST, held.shape[1], axis=1) / HEAD_DIM
        heads = held.reshape(len(held), -1, HEAD_DIM).sum(-1) * self.precision.step
        low, high = low.copy(), high.copy()
        some = heads.max(0)
        for part, added in (
            (self.block.seen, heads.mean(0)),
            (self.block.distance, some),
            (self.block.match, some),
        ):
            more = added.repeat(HEAD_DIM)[: part.stop - part.start]
            low[part] -= more
            high[part] += more
        return low, high, float(heads.mean(0)[-1])

    def _unequal(self, blank: Reading, weights: Float64) -> Reading:
        largest = ", ".join(f"t{t} {weights[t]:.3g}" for t in np.argsort(-weights)[:6] if weights[t] > 0)
        words = f"no number of rows gives these weights, where all rows weigh the same: {largest}"
        return replace(blank, findings=(Finding("weights", (), words),))

    def _rows(self, counts: Counts, weights: Float64) -> tuple[Row, ...]:
        seen = np.flatnonzero(counts.low)
        each = zip(seen.tolist(), counts.low[seen].tolist(), weights[seen].tolist(), strict=True)
        return tuple(Row(token, count, tuple(self.where.get(token, ())), weight) for token, count, weight in each)

    def _share(self, reading: Reading, low: Float64, high: Float64) -> Reading:
        """Compare what the weights sum to: 1, where no sink takes a share. Rows that hold zeros take one too."""
        sink, held = self.probe.architecture.sink, reading.seen
        if self.linear or self.probe.architecture.out_norm or (sink is not None and held is None):
            return reading  # a norm behind attention makes all sums the same
        right = 1.0 if sink is None or held is None else held / (held + float(np.exp(sink)))
        if abs(reading.share / right - 1) <= self.precision.relative + reading.share_error:
            return reading
        words = f"the weights of {'its' if held is None else held} rows sum to {reading.share:.4g}; "
        if sink is not None:
            words += f"with the sink {right:.4g} is right"
        else:
            words += "1 is right: rows that hold nothing are seen too, or weights are lost"
        return replace(reading, findings=(*reading.findings, Finding("share", (), words)))

    def _distances(self, reading: Reading, low: Float64, high: Float64) -> Reading:
        layer = self.probe.network.layers[self.number]
        if isinstance(layer, Layer) and not layer.rope:
            return reading
        part = self.block.distance
        bounds = np.maximum(low[part], 0) / self.gains, high[part] / self.gains
        return Distances(self.precision, self.expected, *bounds).add(reading)

    def _matches(self, reading: Reading, low: Float64, high: Float64) -> Reading:
        if not len(self.expected.match):
            return reading
        part = self.block.match
        bounds = np.maximum(low[part], 0) / self.gains, high[part] / self.gains
        return Matches(self.precision, self.expected, *bounds).add(reading)

    def _prints(self, reading: Reading, low: Float64, high: Float64) -> Reading:
        if not self.number and not self.probe.adapters:
            return reading
        if not self.sure:
            return replace(reading, untold=(*reading.untold, "fingerprints, as a layer below is wrong already"))
        share = (low[self.block.sums[0]] + high[self.block.sums[0]]) / 2 / self.probe.layout.ballast
        bounds = low[self.block.prints] / share, high[self.block.prints] / share
        return prints.add(reading, self.probe, self.expected, self.precision, *bounds)
