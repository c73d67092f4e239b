"""Snapshots in device memory: immutable values with one owner at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from kvgpu.caches.chosen import ALL, Chosen
from kvgpu.memory.buffers import Rows, Workspace
from kvgpu.memory.layout import Geometry, Span, move
from kvgpu.runtime import Runtime
from kvspec.errors import Refused
from kvspec.geometry import Config, same_geometry
from kvspec.refusals import common as refusals


class Snapshot:
    """Rows [start, stop) of a growing cache; of a ring, and of a window beside sinks, the buffered rows as they
    lay, the index, and which rows were chosen."""

    def __init__(
        self, kind: str, config: Config, rows: Rows, start: int, stop: int, index: int = 0, chosen: Chosen = ALL
    ) -> None:
        self.kind, self.config, self.start, self.stop, self.index = kind, config, start, stop, index
        self.chosen = chosen
        self.gone = ""
        self._rows = rows

    @property
    def rows(self) -> Rows:
        """The rows; only until it is closed or consumed."""
        assert not self.gone, "a used-up snapshot is refused before its rows are asked for"
        return self._rows

    @property
    def nbytes(self) -> int:
        """Bytes of its rows in device memory, without guards; 0 after it was closed or consumed."""
        return 0 if self.gone else self._rows.nbytes

    def close(self) -> None:
        """Give the memory back."""
        self.demand_usable("close")
        self.gone = "closed"
        self._rows.release()

    def consume(self) -> None:
        """End it: its rows went into another snapshot or a cache."""
        self.gone = "consumed"

    def passed_on(self) -> Snapshot:
        """The same memory under a new owner."""
        heir = Snapshot(self.kind, self.config, self.rows, self.start, self.stop, self.index, self.chosen)
        self.consume()
        return heir

    def demand_usable(self, what: str) -> None:
        """Refuse a snapshot that was closed or consumed."""
        if self.gone:
            raise refusals.used_up("SNAP-26" if self.gone == "consumed" else "SNAP-27", what, self.gone)


def demand(what: str, given: Any, kind: str, config: Config, runtime: Runtime, clause: str = "SNAP-10") -> Snapshot:
    """Refuse a snapshot that is used up, of another kind or geometry, or not on this device."""
    ours = isinstance(given, Snapshot)
    if ours:
        given.demand_usable(what)
    if not ours or given.kind != kind or not same_geometry(given.config, config):
        raise refusals.geometry(clause, what)
    if given.rows.runtime is not runtime:
        raise refusals.geometry(clause, what)
    saved: Snapshot = given
    return saved


def accepted(demanded: Callable[..., object], *given: Any) -> bool:
    """Whether what is demanded holds."""
    try:
        demanded(*given)
    except Refused:
        return False
    return True


def demand_pieces(
    given: tuple[Any, Any], kind: str, config: Config, runtime: Runtime
) -> tuple[Snapshot | None, Snapshot | None]:
    """The snapshots that a merge was given; all are checked before one is consumed."""
    parent, child = (s if s is None else demand("merge", s, kind, config, runtime, "SNAP-21") for s in given)
    if parent is not None and parent is child:
        raise refusals.same_snapshot("SNAP-21")
    return parent, child


def copied(runtime: Runtime, geometry: Geometry, *runs: tuple[int, Span]) -> Rows:
    """New device memory of exactly the runs' rows, one run behind the other."""
    rows, filled = Rows(runtime, geometry, sum(n for n, _ in runs)), 0
    for n, source in runs:
        move(runtime, geometry, n, source, rows.place.span(filled))
        filled += n
    return rows


def joined(first: Snapshot, second: Snapshot) -> Snapshot:
    """Merge [a, b) and [b, c) into [a, c); both are consumed and their memory freed."""
    runs = ((s.rows.slots, s.rows.place.span()) for s in (first, second))
    rows = copied(first.rows.runtime, first.rows.geometry, *runs)
    made = Snapshot(first.kind, first.config, rows, first.start, second.stop)
    for used in (first, second):
        used.rows.release()
        used.consume()
    return made


def cut(saved: Snapshot, at: int) -> tuple[Snapshot, Snapshot]:
    """Split [a, c) into [a, at) and [at, c); it is consumed and its memory freed."""
    rows, before = saved.rows, at - saved.start
    parts = ((before, rows.place.span()), (rows.slots - before, rows.place.span(before)))
    below, above = (copied(rows.runtime, rows.geometry, part) for part in parts)
    parent = Snapshot(saved.kind, saved.config, below, saved.start, at)
    child = Snapshot(saved.kind, saved.config, above, at, saved.stop)
    rows.release()
    saved.consume()
    return parent, child


class Restoring(ABC):
    """A cache that what was saved can be put back into."""

    kind: str
    config: Config
    space: Workspace
    can_rewind: Callable[[int], bool]
    rewind: Callable[[int], None]

    def can_restore(self, saved: Any, to: int) -> bool:
        """Whether it can be put back here, up to `to`; none, whether the cache can go there by itself."""
        return self.can_rewind(to) if saved is None else accepted(self._demand_saved, saved, to)

    def _demand_saved(self, saved: Any, to: int) -> Snapshot:
        """The snapshot; refused if it cannot be put back here, up to `to`."""
        found = demand("restore", saved, self.kind, self.config, self.space.runtime)
        if not 0 <= to <= found.stop:
            raise refusals.restore_range("SNAP-8", to, found.stop)
        self._demand_within(found, to)
        return found

    @abstractmethod
    def _demand_within(self, saved: Snapshot, to: int) -> None:
        """Refuse a target from 0 to its stop that cannot be reached with it."""

    def restore(self, saved: Any, to: int) -> None:
        """Put it back and make `to` the offset; none, rewind."""
        if saved is None:
            self.rewind(to)
            return
        self._put_back(self._demand_saved(saved, to), to)

    @abstractmethod
    def _put_back(self, saved: Snapshot, to: int) -> None:
        """Put back what was checked, and make `to` the offset."""


class SavedWhole(Restoring):
    """A cache whose snapshots hold all its rows and cannot be cut: a ring, and a window beside sinks."""

    def merge(self, parent: Any, child: Any) -> Snapshot | None:
        """The child holds all that a query sees, so it takes the parent's place."""
        first, second = demand_pieces((parent, child), self.kind, self.config, self.space.runtime)
        if first is not None and second is not None:
            first.rows.release()
            first.consume()
        only = second or first
        return only and only.passed_on()

    def split(self, saved: Any, at: int) -> tuple[Snapshot | None, Snapshot | None]:
        """It cannot be cut at a position: give none, and the whole."""
        if saved is None:
            return None, None
        found = demand("split", saved, self.kind, self.config, self.space.runtime)
        return None, found.passed_on()
