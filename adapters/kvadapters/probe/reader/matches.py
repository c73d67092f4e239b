"""Tells whether the key of each row that a query saw is that of its token, by how much its match head prefers this
row to others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from kvadapters.probe.arrays import Float64
from kvadapters.probe.heads import AMPLITUDE, SLOW
from kvadapters.probe.reader.distances import LOWER
from kvadapters.probe.reader.expected import ExpectedLayer
from kvadapters.probe.reader.precision import Precision
from kvadapters.probe.reader.reading import Finding, Reading, Row

COARSE = "keys, as the form of rows is too coarse"
ALONE = "keys, where fewer than two rows can be compared"
SOME = "keys of some rows: of repeated or foreign ids, at wrong distances, or not among the answers"


class Matches:
    """Tells keys in one layer of a text. `low` and `high`, [ids] each, bound what its match heads show."""

    def __init__(self, precision: Precision, layer: ExpectedLayer, low: Float64, high: Float64) -> None:
        self.layer, self.low, self.high = layer, low, high
        self.slack = precision.score(AMPLITUDE, AMPLITUDE * SLOW, len(layer.sees)) + precision.relative

    def add(self, reading: Reading) -> Reading:
        """Add what is wrong with the keys of a reading's rows."""
        if self.slack > AMPLITUDE:
            return replace(reading, untold=(*reading.untold, COARSE))
        at = {row.token: where for row in reading.rows if (where := self._where(row, reading))}
        if len(at) < 2:
            return replace(reading, untold=(*reading.untold, ALONE))
        wrong = self._wrong(at, reading)
        rows = tuple(structs.replace(row, keys=wrong.get(row.token, ())) for row in reading.rows)
        untold = (*reading.untold, SOME) if len(at) < len(rows) else reading.untold
        findings = [_finding(token, at[token], keys) for token, keys in wrong.items()]
        return replace(reading, rows=rows, findings=(*reading.findings, *findings), untold=untold)

    def _where(self, row: Row, reading: Reading) -> list[int]:
        """Give where the rows of an id stand that were seen; none if that, or their weight, is not known."""
        far = {p for finding in reading.findings if finding.sort == "distance" for p in finding.rows}
        if not (self.low[row.token] > 0 and np.isfinite(self.high[row.token])) or far & {*row.positions}:
            return []
        visible = [p for p in row.positions if self.layer.sees[reading.query, p]]
        return next((places for places in ([*row.positions], visible) if len(places) == row.count), [])

    def _wrong(self, at: dict[int, list[int]], reading: Reading) -> dict[int, tuple[int, ...]]:
        """Give the ids whose rows have wrong keys, each with the ids whose keys they may be. Most rows are taken as
        right: they agree on one number that the logarithms of all weights are off by."""
        scores = [np.logaddexp.reduce(self.layer.match[reading.query, where]) for where in at.values()]
        low, high = self._off(list(at), np.array(scores), reading.layer)
        first, last = _common(low, high, int(np.argmax([max(where) for where in at.values()])))
        return {
            token: self._keys(token, at[token], reading, (first, last))
            for token, below, above in zip(at, low, high, strict=True)
            if above < first or below > last
        }

    def _off(self, tokens: Sequence[int], scores: Float64, layer: int) -> tuple[Float64, Float64]:
        """Bound by how much the logarithms of weights are above scores. Errors below may have changed them."""
        slack = self.slack + (LOWER / 2 if layer else 0.0)
        return np.log(self.low[tokens]) - scores - slack, np.log(self.high[tokens]) - scores + slack

    def _keys(
        self, token: int, where: Sequence[int], reading: Reading, right: tuple[float, float]
    ) -> tuple[int, ...]:
        """Give the ids whose key a row may have, if it is one row."""
        if len(where) > 1:
            return ()
        scores = self.layer.exchanged(reading.query, where[0])
        low, high = self._off([token] * len(scores), scores, reading.layer)
        return tuple(int(t) for t in np.flatnonzero((high >= right[0]) & (low <= right[1])))


def _common(low: Float64, high: Float64, first: int) -> tuple[float, float]:
    """Give the numbers that lie within as many intervals as can be; within the `first` one, if it is among them."""
    within: NDArray[np.integer] = np.searchsorted(np.sort(low), low, "right") - np.searchsorted(np.sort(high), low)
    best = low[within == within.max()]
    mine = best[(best >= low[first]) & (best <= high[first])]
    point = float((mine if len(mine) else best)[0])
    return point, float(high[(low <= point) & (high >= point)].min())


def _finding(token: int, where: Sequence[int], keys: Sequence[int]) -> Finding:
    rows = f"row{'s' * (len(where) > 1)} {', '.join(map(str, where))} (t{token})"
    may = f": it may be that of {' or '.join(f't{t}' for t in keys)}" if 0 < len(keys) <= 3 else ""
    return Finding("match", tuple(where), f"the key of {rows} is not that of its value{may}")
