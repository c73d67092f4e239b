"""The bars of a profile: how close each case came to its limit, with its peers' bars below.

A bar is drawn in a box of 100 units that stretches with the page. The limit is at `ROOF`. A bar may leave the box,
for example if a peer's rows were in a processor cache; then a mark says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from kvreports.profile import figures
from kvreports.safe_text import Html
from kvspec.records.profile import Measurement, Profile

ROOF = 80.0
THICK, THIN, GAP = 9, 4, 1
"""Heights: of the adapter's bar, of a peer's, and of the space between."""


@dataclass(frozen=True)
class Bars:
    """One case: the drawing, and the same in words."""

    measurement: Measurement
    drawing: Html
    shape: str
    peers: list[tuple[str, str, str]]
    """For each peer its name, the adapter's time over its time, and the quartiles of that."""


def groups(record: Profile) -> list[tuple[str, str, list[Bars]]]:
    """The cases of each operation, in the record's order: the operation, what it does, its bars."""
    peers = figures.peers(record)
    operations = figures.by_operation(record).items()
    return [(name, cases[0].words, [_bars(case, peers) for case in cases]) for name, cases in operations]


def _bars(case: Measurement, peers: list[str]) -> Bars:
    ratios = [(p.peer, figures.share(p.ratio), figures.quartiles(p.ratio)) for p in case.peers]
    return Bars(case, _drawing(case, peers), figures.shape(case), ratios)


def peer_share(case: Measurement, peer: str) -> float | None:
    """How close a peer came to the limit: the adapter's share, times the adapter's time over the peer's."""
    time = next((p.ms.median for p in case.peers if p.peer == peer), None)
    if case.fraction is None or not time:
        return None
    return case.fraction.median * (case.device_ms or case.total_ms).median / time


def _drawing(case: Measurement, peers: list[str]) -> Html:
    """A bar for the adapter, and one for each peer that did the same work."""
    if case.fraction is None:
        return Html("")
    shares = [(i, share) for i, peer in enumerate(peers, 1) if (share := peer_share(case, peer)) is not None]
    high = THICK + len(shares) * (THIN + GAP)
    parts = [f'<rect class="room" width="{ROOF}" height="{high}"/>', _bar(0, case.fraction.median, 0, THICK)]
    parts.append(_quartiles(case.fraction.low, case.fraction.high))
    parts += [_bar(i, share, THICK + GAP + n * (THIN + GAP), THIN) for n, (i, share) in enumerate(shares)]
    parts.append(f'<rect class="limit" x="{ROOF}" width=".4" height="{high}"/>')
    box = f'viewBox="0 0 100 {high}" height="{high}" preserveAspectRatio="none"'
    return Html(f'<svg class="bars" {box} aria-hidden="true">{"".join(parts)}</svg>')


def _bar(party: int, share: float, y: float, high: float) -> str:
    """Party 0 is the adapter."""
    wide = min(100.0, ROOF * share)
    beyond = f'<rect class="beyond" x="98.5" y="{y:g}" width="1.5" height="{high}"/>' if ROOF * share > 100 else ""
    return f'<rect class="p{party % 6}" y="{y:g}" width="{max(0.3, wide):.2f}" height="{high}"/>{beyond}'


def _quartiles(*shares: float) -> str:
    """A line through the end of the adapter's bar, from quartile to quartile."""
    low, high = (min(100.0, ROOF * share) for share in shares)
    place = f'x="{low:.2f}" y="{THICK / 2 - 0.75:g}" width="{max(0.2, high - low):.2f}" height="1.5"'
    return f'<rect class="spread" {place}/>'


@dataclass(frozen=True)
class Line:
    """An operation in short."""

    operation: str
    cases: int
    share: str
    limit: str
    peers: list[float | None]
    """The median of the ratios to each peer; None if the peer does no such work."""


def short(record: Profile) -> list[Line]:
    """For each operation the lowest and the highest share of its limit, and the median ratio to each peer."""
    return [_line(operation, cases, record) for operation, cases in figures.by_operation(record).items()]


def _line(operation: str, cases: list[Measurement], record: Profile) -> Line:
    shares = sorted(case.fraction.median for case in cases if case.fraction)
    limits = sorted({case.limit for case in cases if case.limit})
    ratios = [middle(cases, peer) for peer in figures.peers(record)]
    return Line(operation, len(cases), _span(shares), ", ".join(limits), ratios)


def _span(shares: list[float]) -> str:
    if len(shares) < 2:
        return f"{shares[0]:.2f}" if shares else figures.NONE
    return f"{shares[0]:.2f} to {shares[-1]:.2f}"


def middle(cases: list[Measurement], peer: str) -> float | None:
    """The median of the ratios to a peer."""
    ratios = sorted(p.ratio.median for case in cases for p in case.peers if p.peer == peer)
    return ratios[len(ratios) // 2] if ratios else None
