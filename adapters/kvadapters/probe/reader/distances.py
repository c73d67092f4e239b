"""At which distance a query saw each row: by how much its distance head prefers this row to another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kvadapters.probe.network import Float64
from kvadapters.probe.reader.expected import ExpectedLayer
from kvadapters.probe.reader.precision import Precision
from kvadapters.probe.reader.reading import Finding, Reading, Row
from kvadapters.probe.weights import AMPLITUDE, PAIRS

LOWER = 2.0**-7
"""By how much weights above the first layer may change through what is wrong below, or with a row's context."""

NO_ANCHOR = "distances: of no id is there one row, and its weight"


class Distances:
    """Tells distances in one layer of a text; `low` and `high` bound what its distance heads show, [ids] each."""

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
        told = {row.token: self._fitting(row, anchor, query, self.slack) for row in single}
        rows = tuple(replace(row, distances=told.get(row.token, ())) for row in reading.rows)
        wrong = [_finding(row, told[row.token], query) for row in single if self._wrong(row, anchor, reading)]
        untold = [*reading.untold]
        if len(told) < len(rows):
            untold.append("distances of some rows: of repeated or foreign ids, or not among the answers")
        if anchor.positions[0] != query:
            untold.append("distances, but to one row, whose distance is taken as right")
        return replace(reading, rows=rows, findings=(*reading.findings, *_few(wrong)), untold=tuple(untold))

    def _fitting(self, row: Row, anchor: Row, query: int, slack: float) -> tuple[int, ...]:
        """Give the distances that fit what is seen of a row beside another one, whose distance is right."""
        position, home = row.positions[0], anchor.positions[0]
        scores = self.layer.scores(query, position) - self.layer.score(query, home)
        least = np.log(self.low[row.token] / self.high[anchor.token]) - slack
        most = np.log(self.high[row.token] / self.low[anchor.token]) + slack
        fitting = np.flatnonzero((scores >= least) & (scores <= most)) - self.layer.beyond
        return tuple(map(int, fitting))

    def _wrong(self, row: Row, anchor: Row, reading: Reading) -> bool:
        loose = self.slack + (LOWER if reading.layer else 0)
        return reading.query - row.positions[0] not in self._fitting(row, anchor, reading.query, loose)


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
