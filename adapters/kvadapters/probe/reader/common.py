"""Finds what many findings have in common: another view, or rows that were computed elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kvadapters.probe.reader.reading import Judgement, Reading
from kvadapters.probe.views import View


def judged(judgement: Judgement) -> Judgement:
    """Add what the findings of each layer have in common."""
    views = dict.fromkeys((reading.layer, reading.view) for reading in judgement.wrong)
    notes = [note for layer, view in views for note in _notes(judgement, layer, view)]
    return replace(judgement, notes=tuple(notes))


def _notes(judgement: Judgement, layer: int, view: View) -> Iterator[str]:
    readings = [r for r in judgement.readings if (r.layer, r.view) == (layer, view)]
    if any(f.sort in ("extra", "missing") for r in readings for f in r.findings):
        found = [v for v in views(view, len(judgement.tokens)) if _fits(v, readings)]
        names = [str(v) for v in found[:1]] + ["full"] * (View("full") in found[1:])
        if names:
            yield f"layer {layer}: all of these queries see what a layer of {' or '.join(names)} shows"
    yield from (f"layer {layer}: {words}" for words in _keys(readings))
    if rows := _suspects(readings):
        yield f"layer {layer}: look at {_span(rows)}: all queries whose fingerprint is off see rows among them"


def views(view: View, rows: int) -> Iterator[View]:
    """Give the views that a layer may have by mistake, the nearest first."""
    near = sorted(range(1, rows + 1), key=lambda size: abs(size - view.size))
    if view.size:
        yield from (View(view.kind, size) for size in near[:5])
    yield View("full")
    yield from (View(kind, size) for kind in ("window", "chunk") for size in near)


def _fits(view: View, readings: Sequence[Reading]) -> bool:
    """Tell whether all that was read is what a view shows. Repeated ids are left out."""
    sees = view.sees(max(reading.query for reading in readings) + 1)
    for reading in readings:
        seen = {p for row in reading.rows for p in row.positions if len(row.positions) == row.count}
        strange = any(not row.positions for row in reading.rows)
        if reading.seen is None or strange or reading.seen != sees[reading.query].sum():
            return False
        if any(p > reading.query or not sees[reading.query, p] for p in seen):
            return False
    return True


def _suspects(readings: Sequence[Reading]) -> list[int]:
    """Give the rows that include a stale or foreign one: queries with a wrong fingerprint see them, and no others
    do."""
    off = [r for r in readings if any(f.sort == "context" for f in r.findings)]
    right = [r for r in readings if r.fingerprint is not None and r not in off]
    if not off:
        return []
    known = set[int]().union(*(_positions(r) for r in right))
    return sorted(set[int]().union(*(_positions(r) for r in off)) - known)


def _keys(readings: Sequence[Reading]) -> Iterator[str]:
    """Say of rows with wrong keys which ids' key they have, if the queries that see them agree on few."""
    rows = [row for reading in readings for row in reading.rows if row.keys]
    for position in sorted({row.positions[0] for row in rows}):
        seen = [row for row in rows if row.positions[0] == position]
        may = set(seen[0].keys).intersection(*(row.keys for row in seen))
        if 0 < len(may) <= 3:
            names = " or ".join(f"t{t}" for t in sorted(may))
            yield f"row {position} (t{seen[0].token}) has the key of {names}, as all queries that tell it agree"


def _positions(reading: Reading) -> set[int]:
    return {p for row in reading.rows for p in row.positions if p <= reading.query}


def _span(rows: Sequence[int]) -> str:
    if len(rows) > 1 and rows[-1] - rows[0] == len(rows) - 1:
        return f"rows {rows[0]} to {rows[-1]}"
    return f"row{'s' * (len(rows) > 1)} {', '.join(map(str, rows))}"
