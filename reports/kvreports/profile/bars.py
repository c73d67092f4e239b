"""The bars of a profile: for each case how near its limit the adapter came, its peers' bars below.

A bar is drawn in a box of 100 units that stretches with the page. `ROOF` of them are the limit; what went beyond
the box, as a peer may whose rows were in a cache, ends in a mark.
"""

from __future__ import annotations

from dataclasses import dataclass

from kvreports.profile import figures
from kvreports.safe_text import Html
from kvspec.records.profile import Measurement, Profile

ROOF = 80.0
THICK, THIN, GAP = 9, 4, 1
"""Heights: the adapter's bar, a peer's, and what lies between."""


@dataclass(frozen=True)
class Bars:
    """One case drawn: the drawing, and the same in words."""

    found: Measurement
    drawing: Html
    shape: str
    beside: list[tuple[str, str, str]]
    """For each peer its name, the adapter's time over its time, and the quartiles of that."""


def groups(record: Profile) -> list[tuple[str, str, list[Bars]]]:
    """Cases by operation, in the order of the record: the operation, what it is, its bars."""
    names = figures.names(record)
    found = figures.by_operation(record).items()
    return [(operation, cases[0].words, [_bars(case, names) for case in cases]) for operation, cases in found]


def _bars(found: Measurement, names: list[str]) -> Bars:
    beside = [(p.peer, figures.share(p.ratio), figures.between(p.ratio)) for p in found.peers]
    return Bars(found, _drawing(found, names), figures.shape(found), beside)


def peer_share(found: Measurement, peer: str) -> float | None:
    """How near the limit a peer came: the adapter's share, times the adapter's time over the peer's."""
    times = next((p.ms.median for p in found.peers if p.peer == peer), None)
    busy = found.device_ms or found.total_ms
    if found.fraction is None or not times:
        return None
    return found.fraction.median * busy.median / times


def _drawing(found: Measurement, names: list[str]) -> Html:
    """A bar for the adapter, one for each peer that did the same."""
    if found.fraction is None:
        return Html("")
    shares = [(i, share) for i, name in enumerate(names, 1) if (share := peer_share(found, name)) is not None]
    high = THICK + len(shares) * (THIN + GAP)
    parts = [f'<rect class="room" width="{ROOF}" height="{high}"/>', _bar(0, found.fraction.median, 0, THICK)]
    parts.append(_quartiles(found))
    parts += [_bar(i, share, THICK + GAP + n * (THIN + GAP), THIN) for n, (i, share) in enumerate(shares)]
    parts.append(f'<rect class="limit" x="{ROOF}" width=".4" height="{high}"/>')
    head = (
        f'<svg class="bars" viewBox="0 0 100 {high}" height="{high}" preserveAspectRatio="none" aria-hidden="true">'
    )
    return Html(f"{head}{''.join(parts)}</svg>")


def _bar(party: int, share: float, y: float, high: float) -> str:
    """Party 0 is the adapter."""
    wide = min(100.0, ROOF * share)
    beyond = f'<rect class="beyond" x="98.5" y="{y:g}" width="1.5" height="{high}"/>' if ROOF * share > 100 else ""
    return f'<rect class="p{party % 6}" y="{y:g}" width="{max(0.3, wide):.2f}" height="{high}"/>{beyond}'


def _quartiles(found: Measurement) -> str:
    """A line through the end of the adapter's bar, from quartile to quartile."""
    assert found.fraction is not None
    low, high = (min(100.0, ROOF * end) for end in (found.fraction.low, found.fraction.high))
    place = f'x="{low:.2f}" y="{THICK / 2 - 0.75:g}" width="{max(0.2, high - low):.2f}" height="1.5"'
    return f'<rect class="spread" {place}/>'


@dataclass(frozen=True)
class Line:
    """An operation in short."""

    operation: str
    cases: int
    share: str
    limit: str
    peers: list[str]


def short(record: Profile) -> list[Line]:
    """For each operation the lowest and the highest share of its limit, and the median ratio to each peer."""
    return [_line(operation, cases, record) for operation, cases in figures.by_operation(record).items()]


def _line(operation: str, cases: list[Measurement], record: Profile) -> Line:
    shares = sorted(m.fraction.median for m in cases if m.fraction)
    spanned = (
        f"{shares[0]:.2f} to {shares[-1]:.2f}"
        if len(shares) > 1
        else f"{shares[0]:.2f}"
        if shares
        else figures.NONE
    )
    limits = sorted({str(m.limit) for m in cases if m.limit})
    return Line(
        operation, len(cases), spanned, ", ".join(limits), [_middle(cases, n) for n in figures.names(record)]
    )


def _middle(cases: list[Measurement], peer: str) -> str:
    found = sorted(p.ratio.median for m in cases for p in m.peers if p.peer == peer)
    return f"{found[len(found) // 2]:.2f}" if found else figures.NONE
