"""The roofline of a profile: bytes of an operation against its rate, both logarithmic, under the device's limits.

A point near a roof moves bytes as fast as the device can. All points on one slanting line take the same time: an
operation far below the roofs spends its time on starting, whatever its size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from kvreports.profile import figures
from kvreports.safe_text import Html, shortened
from kvreports.units import digits
from kvspec.records.profile import LimitRecord, Measurement, Profile

FAMILIES = {
    "append": ("append", "grow"),
    "ring": ("ring append", "ring view"),
    "view, snapshot, restore": ("view", "snapshot", "restore"),
    "copy": ("copy",),
    "store, batch, layers": ("store append", "layers append", "zero", "batch step", "captured step", "scatter"),
    "attention": (
        *("attention", "rope attention", "ring attention", "batch attention"),
        *("captured attention", "paged attention", "ragged attention", "ragged paged attention", "cross attention"),
    ),
    "pages": ("page append", "gather", "fork"),
    "buckets": ("bucket decode", "bucket block", "bucket crossing", "bucket sync", "encode"),
    "other": (),
}
"""Families of operations; each has a mark and a colour of its own."""

TIMES = tuple(10.0**n for n in range(-6, 2))
"""Seconds of the slanting lines: 1 µs to 10 s."""

TOP, BOTTOM, LEFT, LINE = 14, 44, 52, 16
"""Margins, and the height of a line of text, in pixels."""


def family(operation: str) -> int:
    """The number of an operation's family."""
    named = [name for name, members in FAMILIES.items() if operation in members]
    return list(FAMILIES).index(named[0] if named else "other")


@dataclass(frozen=True)
class Plot:
    """A plane of bytes and GB/s. `right` is the margin for the names of the roofs."""

    wide: int
    high: int
    right: int
    least: tuple[float, float]
    most: tuple[float, float]

    def x(self, nbytes: float) -> float:
        """The place of a number of bytes."""
        share = math.log(nbytes / self.least[0]) / math.log(self.most[0] / self.least[0])
        return LEFT + share * (self.wide - LEFT - self.right)

    def y(self, rate: float) -> float:
        """The place of a rate; at the bottom if it is too slow to be drawn."""
        share = math.log(max(rate, self.least[1]) / self.least[1]) / math.log(self.most[1] / self.least[1])
        return self.high - BOTTOM - share * (self.high - TOP - BOTTOM)


def draw(record: Profile, wide: int = 1120, high: int = 520) -> Html:
    """The drawing, in pixels; empty if no measured operation moves bytes."""
    cases = [m for m in record.measurements if m.rate is not None and m.rate.median > 0]
    if not cases:
        return Html("")
    plot = _plot(record, cases, wide, high)
    parts = [*_grid(plot), *_slants(plot), *_roofs(plot, record.limits), *(_point(plot, m) for m in cases)]
    head = f'<svg class="drawing roofline" role="img" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}"'
    return Html(f'{head} aria-label="Rate against bytes, under the limits">{"".join(parts)}</svg>')


def _plot(record: Profile, cases: Sequence[Measurement], wide: int, high: int) -> Plot:
    sizes = [m.bytes_read + m.bytes_written for m in cases]
    rates = [m.rate.median for m in cases if m.rate]
    roofs = [limit.rate.high for limit in record.limits]
    least = 2.0 ** math.floor(math.log2(min(sizes)) - 0.5), 10.0 ** math.floor(math.log10(min(rates)))
    most = 2.0 ** math.ceil(math.log2(max(sizes)) + 0.5), 1.6 * max(*rates, *roofs, 10 * least[1])
    return Plot(wide, high, 128 if wide > 600 else 84, least, most)


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _path(points: Sequence[tuple[float, float]], kind: str) -> str:
    return f'<path class="{kind}" d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in points)}"/>'


def _grid(plot: Plot) -> Iterator[str]:
    """Lines at sizes sixteen or more times as large as each other, and at the powers of ten of GB/s."""
    low, high = (round(math.log2(n[0])) for n in (plot.least, plot.most))
    apart = 3 if plot.wide > 600 else 6
    for power in range(-(-low // apart) * apart, high + 1, apart):
        x = plot.x(2.0**power)
        yield _path([(x, TOP), (x, plot.high - BOTTOM)], "grid")
        yield _text(
            x, plot.high - BOTTOM + LINE, f"{2 ** (power % 10):,} {('B', 'KiB', 'MiB', 'GiB')[power // 10]}", "tick"
        )
    for power in range(round(math.log10(plot.least[1])), math.floor(math.log10(plot.most[1])) + 1):
        y = plot.y(10.0**power)
        yield _path([(LEFT, y), (plot.wide - plot.right, y)], "grid")
        yield _text(LEFT - 6, y + 4, f"{10.0**power:g}", "rate")
    yield _text((LEFT + plot.wide - plot.right) / 2, plot.high - 8, "bytes of one operation", "tick")
    yield _text(LEFT - 6, TOP - 2, "GB/s", "rate")


def _slants(plot: Plot) -> Iterator[str]:
    """Lines of the same time: the rate at b bytes is b / t. Each is named where it begins, if there is room."""
    free = 0.0
    for seconds in TIMES:
        ends = _ends(plot, seconds)
        if ends is None:
            continue
        yield _path(ends, "slant")
        (x, y), (right, top) = ends
        if y < plot.high - BOTTOM - 1 or x >= free:
            yield _text(
                x + 8, y - 6 + (8 * (top - y) / (right - x) if x > LEFT + 1 else 4), _round(seconds), "slanted"
            )
            free = x + 64


def _ends(plot: Plot, seconds: float) -> list[tuple[float, float]] | None:
    """Where a slanting line enters the plot and where it leaves it; None where it only cuts a corner."""
    reached = (rate * 1e9 * seconds for rate in (plot.least[1], plot.most[1]))
    sizes = [min(max(nbytes, plot.least[0]), plot.most[0]) for nbytes in reached]
    if sizes[1] / sizes[0] < 4:
        return None
    return [(plot.x(nbytes), plot.y(nbytes / seconds / 1e9)) for nbytes in sizes]


def _round(seconds: float) -> str:
    """A power of ten of seconds."""
    unit, factor = next((u, f) for u, f in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)) if seconds * f > 0.99)
    return f"{seconds * factor:.0f} {unit}"


def _roofs(plot: Plot, limits: Sequence[LimitRecord]) -> Iterator[str]:
    """The limits, each with the band of its quartiles and its name in the margin; names do not overlap."""
    edge, last = plot.wide - plot.right, float(TOP) - LINE
    for limit in sorted(limits, key=lambda each: -each.rate.median):
        low, middle, high = (plot.y(r) for r in (limit.rate.low, limit.rate.median, limit.rate.high))
        band = f'x="{LEFT}" y="{high:.1f}" width="{edge - LEFT}" height="{max(1.0, low - high):.1f}"'
        yield f'<rect class="band" {band}/>'
        yield _path([(LEFT, middle), (edge, middle)], "roof")
        last = max(middle + 4, last + LINE)
        yield _path([(edge, middle), (edge + 8, last - 4)], "roof")
        unit = " GB/s" if plot.wide > 600 else ""
        yield _text(edge + 12, last, f"{shortened(limit.name, 12)} {digits(limit.rate.median)}{unit}", "roofed")


def _point(plot: Plot, case: Measurement) -> str:
    """A point with its quartiles; a browser shows its title beside the pointer."""
    rate = case.rate
    assert rate is not None
    x = plot.x(case.bytes_read + case.bytes_written)
    low, middle, high = (plot.y(r) for r in (rate.low, rate.median, rate.high))
    time = figures.time(case.device_ms or case.total_ms)
    title = shortened(f"{case.operation}: {figures.shape(case)}: {figures.rate(rate)}, {time}", 300)
    kind = family(case.operation)
    whisker = _path([(x, low), (x, high)], "whisker") if low - high > 10 else ""
    return f'<g class="f{kind}"><title>{escape(title)}</title>{whisker}{mark(kind, x, middle)}</g>'


MARKS = (
    "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0-4 0Z",
    "M-4-4H4V4H-4Z",
    "M0-5L5 4H-5Z",
    "M0-5L5 0L0 5L-5 0Z",
    "M-5-4H5L0 5Z",
    "M-2-5H2V-2H5V2H2V5H-2V2H-5V-2H-2Z",
    "M-4-5H0V0H4V5H-4Z",
    "M-5-5L0-2L5-5L2 0L5 5L0 2L-5 5L-2 0Z",
    "M-5-2H5V2H-5Z",
)
"""The outline of each family's mark."""


def mark(kind: int, x: float, y: float) -> str:
    """The mark of a family."""
    return f'<path class="point" transform="translate({x:.1f} {y:.1f})" d="{MARKS[kind]}"/>'


def legend(record: Profile) -> list[tuple[Html, str]]:
    """Mark and name of each family that occurs."""
    kinds = sorted({family(m.operation) for m in record.measurements if m.rate is not None})
    head = '<svg class="drawing roofline" width="14" height="14" viewBox="-7 -7 14 14" aria-hidden="true">'
    return [
        (Html(f'{head}<g class="f{kind}">{mark(kind, 0, 0)}</g></svg>'), list(FAMILIES)[kind]) for kind in kinds
    ]
