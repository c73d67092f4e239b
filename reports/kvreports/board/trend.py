"""The share of a cache's claimed clauses that held, from record to record, as a line in the board."""

from __future__ import annotations

from html import escape

from kvreports.board.engines import Cache
from kvreports.safe_text import Html, line, plain, shortened

WIDE, HIGH, EDGE = 96, 24, 4
"""Pixels."""


def trend(cache: Cache) -> Html:
    """The share that held at each record, the oldest at the left; empty with only one record."""
    if len(cache.engines) < 2:
        return Html("")
    shares = [held / claimed if claimed else 0.0 for claimed, held, *_ in (e.numbers for e in cache.engines)]
    points = [_point(i, share, len(shares)) for i, share in enumerate(shares)]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    x, y = points[-1]
    told = escape(shortened(line(plain(cache.trend)), 300))
    return Html(
        f'<svg class="trend" width="{WIDE}" height="{HIGH}" viewBox="0 0 {WIDE} {HIGH}" role="img" '
        f'aria-label="{told}"><title>{told}</title><path d="{path}"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5"/></svg>'
    )


def _point(number: int, share: float, count: int) -> tuple[float, float]:
    return EDGE + (WIDE - 2 * EDGE) * number / (count - 1), HIGH - EDGE - (HIGH - 2 * EDGE) * share
