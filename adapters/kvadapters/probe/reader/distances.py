"""Tells at which distance a query saw each row, by how much its distance head prefers this row to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from kvadapters.probe.arrays import Float64
from kvadapters.probe.heads import AMPLITUDE, PAIRS
from kvadapters.probe.reader.expected import ExpectedLayer
from kvadapters.probe.reader.precision import Precision
from kvadapters.probe.reader.reading import Finding, Reading, Row

LOWER = 2.0**-7
"""How much the weights above the first layer may change because of an error below, or because of a row's
context."""

NO_ANCHOR = "distances: of no id is there one row, and its weight"


class Distances:
    """Tells distances in one layer of a text. `low` and `high`, [ids] each, bound what its distance heads show."""

    def __init__(self, precision: Precision, layer: ExpectedLayer, low: Float64, high: Float64) -> None:
        self.layer, self.low, self.high = layer, low, high
        scores = precision.score(AMPLITUDE, PAIRS[0][1], len(layer.sees) + layer.beyond)
        self.slack = 2 * (scores + precision.relative)

    def add(self, reading: Reading) -> Reading:
        """Add distances to a reading, and what is wrong with them."""
        known = (self.low > 0) & np.isfinite(self.high)
        single = [row for row in reading.rows if row.count == len(row.positions) == 1 and known[row.token]]
        if not single:
            return replace(reading, untold=(*reading.untold, NO_ANCHOR))
        query = reading.query
        anchor = max(single, key=lambda row: row.positions[0] if row.positions[0] <= query else -1)
        told, right = self._fitting(single, anchor, reading)
        rows = tuple(
            structs.replace(row, distances=told[row.token]) if row.token in told else row for row in reading.rows
        )
        wrong = [_finding(row, told[row.token], query) for row, fits in zip(single, right, strict=True) if not fits]
        untold = [*reading.untold]
        if len(told) < len(rows):
            untold.append("distances of some rows: of repeated or foreign ids, or not among the answers")
        if anchor.positions[0] != query:
            untold.append("distances, but to one row, whose distance is taken as right")
        return replace(reading, rows=rows, findings=(*reading.findings, *_few(wrong)), untold=tuple(untold))

    def _fitting(
        self, single: Sequence[Row], anchor: Row, reading: Reading
    ) -> tuple[dict[int, tuple[int, ...]], NDArray[np.bool_]]:
        """Give the distances of each row that fit its weight beside the `anchor`'s, whose distance is taken as
        right. Tell for each row, bool [rows], whether its own distance fits; errors below may have changed its
        weight a little."""
        query, loose = reading.query, LOWER if reading.layer else 0.0
        tokens, at = [row.token for row in single], np.array([row.positions[0] for row in single])
        scores = self.layer.scores(query, at) - self.layer.score(query, anchor.positions[0])
        least = np.log(self.low[tokens] / self.high[anchor.token]) - self.slack
        most = np.log(self.high[tokens] / self.low[anchor.token]) + self.slack
        own = scores[np.arange(len(at)), query - at + self.layer.beyond]
        row, distance = np.nonzero((scores >= least[:, None]) & (scores <= most[:, None]))
        ends, fitting = np.searchsorted(row, np.arange(len(at) + 1)), (distance - self.layer.beyond).tolist()
        found = {token: tuple(fitting[ends[i] : ends[i + 1]]) for i, token in enumerate(tokens)}
        return found, (own >= least - loose) & (own <= most + loose)


def _finding(row: Row, fitting: tuple[int, ...], query: int) -> Finding:
    near = " or ".join(map(str, sorted(fitting, key=abs)[:3]))
    may = f"it seems {near} back" if near else "no distance fits"
    words = f"row {row.positions[0]} (t{row.token}) is not {query - row.positions[0]} back: {may}"
    return Finding("distance", row.positions, words)


def _few(findings: list[Finding]) -> list[Finding]:
    """Say many in one line."""
    if len(findings) <= 3:
        return findings
    rows = tuple(sorted(p for finding in findings for p in finding.rows))
    more = f"; {len(findings) - 1} more rows of this query are at wrong distances"
    return [Finding("distance", rows, findings[0].words + more)]
