"""GROW, RING, BOUNDED, SINK, MASK and SNAP over lists that forget nothing: a window is only what queries are shown,
and so is a choice of rows.

Written from the text of the chapters alone. Storage that never ends is no ring's, so all of it is claimed at level
visible.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from kvspec.contract import Lengths, Pair
from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES, same_geometry
from kvspec.masks import Causal, Explicit, Window
from support.engines.foreign.demands import want, want_rows, want_sizes

KINDS = {"growing": (), "ring": ("window",), "bounded": ("max_len",), "sink": ("window", "sinks")}
"""The kinds, each with the sizes that it needs."""

NONE: tuple[frozenset[int], int] = frozenset(), 0
"""No row is hidden by a choice."""

Row = tuple[Any, Any]
"""A key `[B, heads, k_dim]` and a value."""


class Saved:
    """Rows that were saved, from `start` on; which of them are hidden, and since when."""

    def __init__(
        self, kind: str, config: Any, rows: Sequence[Row], start: int, hidden: tuple[frozenset[int], int] = NONE
    ) -> None:
        self.kind, self.config, self.rows, self.start, self.open = kind, config, list(rows), start, True
        self.hidden = hidden

    @property
    def stop(self) -> int:
        """The offset behind them."""
        return self.start + len(self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes of its rows."""
        return len(self.rows) * int(self.config.row_bytes) if self.open else 0

    def close(self) -> None:
        """Give it up."""
        want(self.open, "closed or consumed before")
        self.open = False


class Remembering:
    """Any of these caches."""

    def __init__(self, kind: str, config: Any) -> None:
        want_sizes(config, "step", *KINDS[kind])
        extra = {"window", "max_len", "sinks"} - set(KINDS[kind])
        want(not any(getattr(config, name) for name in extra), f"{config} is no {kind}")
        self.kind, self.config, self.kept = kind, config, config.sinks or 0
        if kind == "sink":
            want({config.beside, config.shifted} <= {None, 1}, "beside and shifted are 1 or left out")
            want(config.beside == 1 or config.window > config.sinks, "no room beside the sinks")
        self.newest = None if config.window is None else config.window - (0 if config.beside else self.kept)
        self.free()

    def free(self) -> None:
        """Begin anew."""
        self.rows = list[Row]()
        self.hide(*NONE)
        self.queries: int | None = None
        self.written = False

    def left(self, positions: Sequence[int]) -> list[int]:
        """Those of some positions whose rows were not dropped by a choice."""
        return [p for p in positions if p not in self.hidden]

    def rank(self, p: int) -> int:
        """How many rows below a position were not dropped by a choice."""
        return p - bisect_left(self.in_order, p)

    def hide(self, positions: frozenset[int], at: int) -> None:
        """Show no query these rows; they were chosen at an offset."""
        self.hidden, self.hidden_at, self.in_order = positions, at, sorted(positions)

    def keep(self, positions: Sequence[int]) -> None:
        """Show these rows alone, and what is to come."""
        n = len(self.rows)
        seen = [p for p in range(n) if self.window_shows(n - 1, p)]
        once = len(positions) == len(set(positions)) > 0
        want(once and set(positions) <= set(seen), f"{positions} of {seen}")
        hidden = frozenset(range(n)) - set(positions)
        if hidden != self.hidden:
            self.hide(hidden, n)
        self.queries = None

    def can_append(self, n: int) -> bool:
        """Whether so many rows fit."""
        return n == 0 or self.config.max_len is None or len(self.rows) + n <= self.config.max_len

    def append(self, keys: Any, values: Any) -> None:
        """Add rows to the list."""
        n = keys.shape[2]
        if n:
            want_rows(self.config, keys, values, self.config.batch)
            want(self.config.max_len is None or len(self.rows) + n <= self.config.max_len, "no room")
            self.written = True
        self.rows += [(keys[:, :, i].copy(), values[:, :, i].copy()) for i in range(n)]
        self.queries = n

    def columns(self) -> list[int]:
        """The positions of the rows that the last queries see, or some of them do."""
        first = len(self.rows) - max(self.queries or 0, 1)
        return [p for p in self.left(range(len(self.rows))) if self.near(first, p)]

    def near(self, query: int, p: int) -> bool:
        """Whether a row is a sink, or in the window of a query, or newer than it."""
        return self.newest is None or self.sink(p) or self.rank(p) > self.rank(query) - self.newest

    def sink(self, p: int) -> bool:
        """Whether a row is one of the first."""
        return self.rank(p) < self.kept

    def stacked(self, positions: Sequence[int]) -> Pair:
        """These rows as arrays."""
        if positions:
            rows = (self.rows[p] for p in positions)
            return Pair(*(np.stack(side, 2) for side in zip(*rows, strict=True)))
        return Pair(*(np.zeros(self.config.shape(what, 0), DTYPES[self.config.dtype]) for what in "kv"))

    def read(self, what: str) -> Pair | None:
        """What queries see, or what a next one would see beside itself."""
        if what == "history":
            return self.stacked(self.columns())
        view = [p for p in self.left(range(len(self.rows))) if self.near(len(self.rows), p)]
        return self.stacked(view) if view else None

    def lengths(self) -> Lengths:
        """How many rows there are, and can be read."""
        n = self.rank(len(self.rows))
        return Lengths(len(self.rows), n if self.newest is None else min(n, self.kept + self.newest))

    def can_rewind(self, to: int) -> bool:
        """Whether such rows can be dropped."""
        n = len(self.rows)
        return to == n or (self.hidden_at <= to < n and to >= 0 and self.all_there(n, self.hidden))

    def all_there(self, n: int, hidden: Any) -> bool:
        """Whether no row was dropped by age, of n without those that a choice dropped."""
        return self.newest is None or n - len(hidden) <= self.kept + self.newest

    def rewind(self, to: int) -> None:
        """Drop rows."""
        want(self.can_rewind(to), f"rewind to {to}")
        self.rows = self.rows[:to]
        self.queries = None

    def positions(self) -> list[int]:
        """Of the rows that the newest query sees."""
        want(self.queries is not None, "no history")
        if self.queries == 0:
            return []
        last = len(self.rows) - 1
        shown = zip(self.columns(), self.places(), strict=True)
        return [place for p, place in shown if self.window_shows(last, p)]

    def places(self) -> list[int]:
        """The position of each column, or its place in the cache."""
        columns = self.columns()
        return list(range(len(columns))) if self.config.shifted else columns

    def window_shows(self, query: int, p: int) -> bool:
        """Whether the cache shows a position to a query."""
        return p <= query and p not in self.hidden and self.near(query, p)

    def mask(self, logical: Any) -> Any:
        """An array over the columns; None if nothing is hidden."""
        want(self.queries is not None, "no history")
        n, columns = self.queries or 0, self.columns()
        arrays = [part.array for part in logical if isinstance(part, Explicit)]
        self.want_arrays(arrays, n, len(columns))
        want(all(part.size >= 1 for part in logical if isinstance(part, Window)), "a window below 1")
        if n == 0:
            return arrays[0] if arrays else None
        shown = np.ones((1, 1, n, len(columns)), bool)
        if self.newest is not None:
            first = len(self.rows) - n
            beyond = [[p > first + i or self.window_shows(first + i, p) for p in columns] for i in range(n)]
            shown &= np.array(beyond, bool)
        for part in logical:
            shown = shown & self.part(part, n)
        added = [array for array in arrays if array.dtype != bool]
        if not added:
            return None if shown.all() else shown
        with np.errstate(over="ignore", invalid="ignore"):
            total = sum(added, np.float32(0))
            hidden = ~shown | np.any(np.stack(np.broadcast_arrays(*(a == -np.inf for a in added))), 0)
            return np.where(hidden, np.float32(-np.inf), total)

    def part(self, part: Any, n: int) -> Any:
        """What a part lets queries see, by the positions of columns and of queries."""
        if isinstance(part, Explicit):
            return part.array if part.array.dtype == bool else True
        places = np.array(self.places())
        query = (places[-n:] if n else places)[:, None]
        return (places <= query if isinstance(part, Causal) else places > query - part.size)[None, None]

    def want_arrays(self, arrays: Sequence[Any], n: int, columns: int) -> None:
        """Refuse arrays that do not fit."""
        for a in arrays:
            want(a.ndim == 4 and a.dtype in (bool, np.float32), f"{a.dtype} {a.shape}")
            want(a.shape[0] in (1, self.config.batch) and a.shape[2] == n, f"{a.shape} for {n} queries")
            want(a.shape[3] in (1, columns), f"{a.shape} for {columns} columns")
        heads = {a.shape[1] for a in arrays} - {1}
        want(len(heads) < 2 and 0 not in heads, f"masks of {heads} heads")

    def mine(self, *saved: Saved | None) -> None:
        """Refuse what is not open, or not of such a cache."""
        for one in saved:
            fits = one is None or (one.open and one.kind == self.kind and same_geometry(one.config, self.config))
            want(fits, "not of this kind and geometry, or not open")

    def snapshot(self, start: int) -> Saved | None:
        """Save the rows from a position on; of a ring all."""
        first = 0 if self.newest is not None else max(0, start)
        there = max(0, start) < len(self.rows)
        hidden = self.hidden, self.hidden_at
        return Saved(self.kind, self.config, self.rows[first:], first, hidden) if there else None

    def restore(self, saved: Saved | None, to: int) -> None:
        """Put saved rows behind those there are before them."""
        if saved is None:
            return self.rewind(to)
        self.mine(saved)
        hidden, at = saved.hidden
        back = to == saved.stop or (to >= at and self.all_there(saved.stop, hidden))
        want(0 <= to <= saved.stop and saved.start <= len(self.rows) and back, f"restore to {to}")
        self.rows = [*self.rows[: saved.start], *saved.rows][:to]
        self.queries, self.written = None, True
        self.hide(hidden, at)
        return None

    def can_restore(self, saved: Saved | None, to: int) -> bool:
        """Whether another cache like this one can do it."""
        try:
            copy(self).restore(saved, to)
        except ValueError:
            return False
        return True

    def merge(self, parent: Saved | None, child: Saved | None) -> Saved | None:
        """Join two that meet; of rings take the newer."""
        self.mine(parent, child)
        if parent is None or child is None:
            return self.taken(parent or child)
        want(parent is not child, "a snapshot with itself")
        if self.newest is not None:
            parent.close()
            return self.taken(child)
        want(parent.stop == child.start, f"{parent.stop} and {child.start} do not meet")
        parent.close()
        child.close()
        return Saved(self.kind, self.config, parent.rows + child.rows, parent.start)

    def taken(self, saved: Saved | None) -> Saved | None:
        """The same rows as another snapshot; this one is consumed."""
        if saved is None:
            return None
        saved.close()
        return Saved(saved.kind, saved.config, saved.rows, saved.start, saved.hidden)

    def split(self, saved: Saved | None, at: int) -> tuple[Saved | None, Saved | None]:
        """Cut one in two."""
        self.mine(saved)
        if saved is None or self.newest is not None or at <= saved.start:
            return None, self.taken(saved)
        if at >= saved.stop:
            return self.taken(saved), None
        saved.close()
        cut = at - saved.start
        parts = (saved.rows[:cut], saved.start), (saved.rows[cut:], at)
        parent, child = (Saved(self.kind, self.config, *part) for part in parts)
        return parent, child


class Everything:
    """The adapter."""

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        return {
            "name": "remembering",
            "chapters": dict.fromkeys((*KINDS, "mask", "snapshot", "questions"), "visible"),
        }

    def open(self, kind: str, config: Any) -> Remembering:
        """A fresh cache."""
        if kind not in KINDS:
            raise Unsupported(f"no kind {kind}")
        return Remembering(kind, config)
