"""Snapshots are immutable values of one owner at a time. Merging and splitting consume what they are given."""

from __future__ import annotations

from collections.abc import Callable

from kvref.cite import cite
from kvref.memory import meter
from kvref.memory import rows as pairs
from kvref.memory.chosen import ALL, Chosen
from kvspec.contract import Pair
from kvspec.errors import Refused
from kvspec.geometry import Config, same_geometry
from kvspec.refusals import common as refusals


class Snapshot:
    """Rows of the positions [start, stop); of a ring, and a window beside sinks, all buffered rows in slot order,
    the index, and which rows were chosen."""

    def __init__(
        self, kind: str, config: Config, rows: Pair, start: int, stop: int, index: int = 0, chosen: Chosen = ALL
    ) -> None:
        self.kind, self.config, self.start, self.stop, self.index = kind, config, start, stop, index
        self.chosen = chosen
        self._rows: Pair | None = rows
        self.gone = ""

    @property
    def rows(self) -> Pair:
        """The rows, until it is closed or consumed."""
        assert self._rows is not None, "a used-up snapshot is refused before its rows are asked for"
        return self._rows

    @property
    def nbytes(self) -> int:
        """Bytes of its rows; 0 once it is closed or consumed."""
        return 0 if self._rows is None else sum(a.nbytes for a in self._rows)

    def close(self) -> None:
        """Return the memory."""
        self.usable("close")
        cite("SNAP-29")
        self._rows, self.gone = None, "closed"

    def consume(self) -> None:
        """A merge or split has taken its place."""
        cite("SNAP-26")
        self._rows, self.gone = None, "consumed"

    def handed_on(self) -> Snapshot:
        """The same rows under a new owner; this one is consumed."""
        new = Snapshot(self.kind, self.config, self.rows, self.start, self.stop, self.index, self.chosen)
        self.consume()
        return new

    def usable(self, what: str) -> None:
        """Refuse a snapshot that was closed or consumed."""
        if self.gone:
            raise refusals.used_up("SNAP-27" if self.gone == "closed" else "SNAP-26", what, self.gone)


def check(what: str, saved: Snapshot, kind: str, config: Config, clause: str = "SNAP-10") -> None:
    """Refuse a snapshot that is used up, or not of this kind and geometry."""
    saved.usable(what)
    if saved.kind != kind or not same_geometry(saved.config, config):
        raise refusals.geometry(clause, what)


def accepted(demand: Callable[..., None], *arguments: object) -> bool:
    """Whether nothing is refused."""
    try:
        demand(*arguments)
    except Refused:
        return False
    return True


def pieces(what: str, given: tuple[Snapshot | None, ...], kind: str, config: Config) -> list[Snapshot]:
    """The pieces without None; all are checked before one is consumed."""
    found = [s for s in given if s is not None]
    for s in found:
        check(what, s, kind, config, "SNAP-21")
    if len(found) == 2 and found[0] is found[1]:
        raise refusals.same_snapshot("SNAP-21")
    return found


def only(found: list[Snapshot]) -> Snapshot | None:
    """Merging with none gives the other."""
    cite("SNAP-20")
    return found[0].handed_on() if found else None


def joined(first: Snapshot, second: Snapshot) -> Snapshot:
    """The rows of both in one; both are consumed."""
    cite("SNAP-28")
    rows = pairs.joined(first.rows, second.rows)
    made = Snapshot(first.kind, first.config, rows, first.start, second.stop)
    first.consume()
    second.consume()
    return made


def cut(saved: Snapshot, at: int) -> tuple[Snapshot, Snapshot]:
    """The rows before position `at`, and the rows from `at` on; the snapshot is consumed."""
    i = at - saved.start
    parts = slice(0, i), slice(i, None)
    before, after = (Pair(*(meter.moved(a[:, :, part]) for a in saved.rows)) for part in parts)
    first = Snapshot(saved.kind, saved.config, before, saved.start, at)
    second = Snapshot(saved.kind, saved.config, after, at, saved.stop)
    saved.consume()
    return first, second


class SavedWhole:
    """A cache whose snapshots hold all its rows and cannot be cut: a ring, and a window beside sinks."""

    kind: str
    config: Config

    def merge(self, parent: Snapshot | None, child: Snapshot | None) -> Snapshot | None:
        """The child holds all that a query sees, so it takes the parent's place."""
        found = pieces("merge", (parent, child), self.kind, self.config)
        if len(found) < 2:
            return only(found)
        cite("SNAP-19")
        found[0].consume()
        return found[1].handed_on()

    def split(self, saved: Snapshot | None, at: int) -> tuple[Snapshot | None, Snapshot | None]:
        """It cannot be cut at a position: give none, and the whole."""
        if saved is None:
            cite("SNAP-25")
            return None, None
        check("split", saved, self.kind, self.config)
        cite("SNAP-24")
        return None, saved.handed_on()
