"""Snapshots in the list model: the tokens of a range of positions, or of a ring all there were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from kvref.cite import cite
from kvref.list_model.views import View
from kvspec.geometry import Config, same_geometry
from kvspec.refusals import common


@dataclass(eq=False)
class SavedTokens:
    """A snapshot: the tokens of positions [start, stop), or of a ring all there were."""

    kind: str
    config: Config
    start: int
    stop: int
    tokens: list[int]
    width: int = 0
    gone: str = ""
    highest: int = 0
    """For a ring: the highest offset so far."""
    whole: bool = False
    """Whether it has all there was, and cannot be cut at a position."""
    floor: int = 0
    """The offset at which its cache was unpacked, where rows below it were left behind."""
    view: View | None = None
    """For rows that a caller chose: what its cache showed of them."""
    nbytes: ClassVar[int] = 0
    """Bytes are for an adapter to say."""

    def close(self) -> None:
        """End the snapshot's life."""
        self._demand_open("close")
        self.gone = "closed"

    def usable(self, what: str, kind: str, config: Config, clause: str) -> None:
        """Refuse a snapshot that is used up, or of another kind or geometry."""
        self._demand_open(what)
        if self.kind != kind or not same_geometry(self.config, config):
            raise common.geometry(clause, what)

    def _demand_open(self, what: str) -> None:
        if self.gone:
            raise common.used_up("SNAP-27" if self.gone == "closed" else "SNAP-26", what, self.gone)

    def handed_on(self) -> SavedTokens:
        """The same tokens under a new owner; this one is consumed."""
        cite("SNAP-26")
        self.gone = "consumed"
        return replace(self, gone="")

    def part(self, start: int, stop: int) -> SavedTokens:
        """Those of some of the positions."""
        tokens = self.tokens[start - self.start : stop - self.start]
        return SavedTokens(self.kind, self.config, start, stop, tokens)


def merged(parts: Sequence[SavedTokens]) -> SavedTokens | None:
    """One snapshot of two that meet, or a ring's later one; both are consumed. Of one, itself; of none, None."""
    if len(parts) < 2:
        cite("SNAP-20")
        return parts[0].handed_on() if parts else None
    first, second = parts
    if first is second:
        raise common.same_snapshot("SNAP-21")
    if not first.whole and first.stop != second.start:
        raise common.not_meeting("SNAP-18", (first.start, first.stop), (second.start, second.stop))
    cite("SNAP-19" if first.whole else "SNAP-17", "SNAP-26")
    first.gone = "consumed"
    made = second.handed_on()
    if not first.whole:
        made = SavedTokens(made.kind, made.config, first.start, made.stop, first.tokens + made.tokens)
    return made


def divided(saved: SavedTokens, at: int) -> tuple[SavedTokens | None, SavedTokens | None]:
    """Two of one; it is gone."""
    whole = saved.handed_on()
    if whole.whole:
        cite("SNAP-24")
        return None, whole
    if not whole.start < at < whole.stop:
        cite("SNAP-23")
        return (None, whole) if at <= whole.start else (whole, None)
    cite("SNAP-22")
    return whole.part(whole.start, at), whole.part(at, whole.stop)
