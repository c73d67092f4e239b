"""Speculation on a device: drafts stand behind rows until a commit says how many are kept.

A growing cache takes drafts into its own buffer, behind the offset. For a ring, and for isolated rounds, they lie
in a buffer of the round, behind the rows that they see, in the order a prefill would leave. So a commit never
allocates: a growing cache has nothing to do, others move rows once or take over the buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Protocol, TypeVar

from kvgpu.caches import mask
from kvgpu.caches.branches import Branches, together
from kvgpu.caches.queries import nothing
from kvgpu.memory.buffers import Rows
from kvgpu.memory.cache_rows import Slots, rows_in
from kvgpu.memory.layout import Place
from kvspec.contract import Pair
from kvspec.geometry import Array
from kvspec.masks import Explicit, Logical, Window
from kvspec.refusals import common as refusals

Kind = TypeVar("Kind", bound=type)

ROOM = 8
"""Drafts that a buffer of a round has room for at first."""

REFUSED = (
    *("append", "attend", "read", "mask", "rewind", "free", "snapshot", "restore", "merge", "split", "plan"),
    *("pack", "unpack"),
)
"""What a cache refuses while a round is open on it."""

ASKED = ("can_rewind", "can_append", "can_restore")
"""What a cache answers by no while a round is open on it, but for an append of no rows."""


def speculative(kind: Kind) -> Kind:
    """Let a cache enter rounds. During a round it refuses everything but `lengths` and appends of no rows."""
    for name in (n for n in REFUSED if hasattr(kind, n)):
        setattr(kind, name, _kept_out(getattr(kind, name)))
    for name in (n for n in ASKED if hasattr(kind, n)):
        setattr(kind, name, _answered(getattr(kind, name)))
    return kind


def _answered(question: Callable[..., bool]) -> Callable[..., bool]:
    @wraps(question)
    def answered(cache: Any, *about: Any) -> bool:
        nothing_new = question.__name__ == "can_append" and about == (0,)
        return (nothing_new or not cache.in_round) and question(cache, *about)

    return answered


def _kept_out(operation: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(operation)
    def checked(cache: Any, *given: Any) -> Any:
        if not cache.in_round:
            return operation(cache, *given)
        name = operation.__name__
        if name == "attend" and nothing(*given[:2]):
            return operation(cache, *given)
        if name == "append" and rows_in(given[0]) == 0:
            return None
        raise refusals.in_round("DRAFT-12", name)

    return checked


class Layer(Protocol):
    """One cache of a round. The next draft sees `filled` rows and itself."""

    cache: Any
    start: int
    drafts: int
    queries: int | None
    branches: Branches
    seen: int
    """Live rows that drafts see."""
    store: Slots

    @property
    def filled(self) -> int:
        """Rows that drafts see, and drafts."""

    def put(self, source: Place) -> None:
        """Take drafts in. If this fails, nothing has changed."""

    def read(self) -> Pair:
        """All these rows, in position order."""

    def end(self, kept: int) -> None:
        """Leave the first drafts in the cache, and drop the others."""


class Through:
    """Drafts in a growing cache's own slots, beyond its offset. They are dead until a commit moves the offset."""

    def __init__(self, cache: Any) -> None:
        self.cache, self.start = cache, cache.offset
        self.written, self.drafts = cache.written, 0
        self.seen, self.store = self.start, cache.store
        self.queries: int | None = None
        self.branches = Branches()

    @property
    def filled(self) -> int:
        """Live rows and drafts."""
        return int(self.start + self.drafts)

    def put(self, source: Place) -> None:
        """Write them, and turn offset and history back."""
        self.cache._write(source, self.filled)
        self.drafts += source.slots
        self.cache.offset, self.cache.written = self.start, self.written

    def read(self) -> Pair:
        """The cache's rows, drafts included."""
        found: Pair = self.cache.store.read(self.filled, whole=True)
        return found

    def end(self, kept: int) -> None:
        """Count the kept drafts: they are in the cache's slots already."""
        self.cache.offset = self.start + kept
        self.cache.written = self.written or kept > 0
        if kept:
            self.cache.store.residual.settle(self.cache.offset)


class Aside:
    """Drafts in a buffer of the round, behind copies of the live rows that they see, all in position order."""

    def __init__(self, cache: Any) -> None:
        self.cache, self.start, self.drafts = cache, cache.offset, 0
        self.queries: int | None = None
        self.branches = Branches()
        self.seen, source = cache.before_drafts()
        self.store = Slots(cache.space, cache.config)
        rows = self.store.allocated(max(self.seen, (cache.config.window or 1) - 1) + ROOM)
        if source is not None:
            self.store.move(self.seen, source, rows.place.span())
        self.store.adopt(rows)

    @property
    def filled(self) -> int:
        """Rows seen and drafts."""
        return int(self.seen + self.drafts)

    def put(self, source: Place) -> None:
        """Move them behind the earlier drafts, into a longer buffer if they do not fit."""
        n, rows = source.slots, self.store.rows
        assert rows is not None, "a round that is over takes no drafts"
        if self.filled + n > rows.slots:
            rows = self._longer(n)
        self.store.put(n, source, rows, self.filled)
        self.store.adopt(rows)
        self.drafts += n

    def _longer(self, n: int) -> Rows:
        """Make a buffer with all rows so far, and room for n more and for as many drafts again."""
        old = self.store.rows
        new = self.store.allocated(self.store.slots + self.drafts + n)
        if old is not None:
            self.store.move(self.filled, old.place.span(), new.place.span())
        return new

    def read(self) -> Pair:
        """The rows as they lie."""
        return self.store.read(self.filled)

    def end(self, kept: int) -> None:
        """Append the first drafts to the cache. The cache may take over the buffer; else the buffer is freed."""
        rows, self.store.rows = self.store.rows, None
        if rows is not None and not (kept and self.cache.keep(rows, self.seen, kept)):
            rows.release()


class Round:
    """A round over at most one cache a layer; `layers` holds the caches by the number of their layer."""

    def __init__(self, caches: Sequence[Any], isolated: bool) -> None:
        _demand(caches)
        self.isolated, self.ended = isolated, ""
        self.layers = {i: _layer(c, isolated) for i, c in enumerate(caches) if c is not None}
        self._mark(True)

    def _mark(self, entering: bool) -> None:
        for layer in () if self.isolated else self.layers.values():
            layer.cache.in_round = entering
            layer.cache.queries = None

    def draft(self, layer: int, keys: Array, values: Array, on: Sequence[int] | None = None) -> None:
        """Append n drafts on one layer; those of the host are uploaded."""
        self._demand_open("draft")
        to, n = self.layers[layer], rows_in(keys)
        store = to.cache.store
        if n != 0:
            store.demand("DRAFT-8", keys, values)
        parents = to.branches.parents(n, on)
        if n != 0:
            to.put(store.codec.staged(keys, values))
            to.branches.hang(parents)
        to.queries = n

    def read(self, layer: int) -> Pair:
        """The history of the newest drafts."""
        self._demand_open("read")
        return self.layers[layer].read()

    def mask(self, layer: int, logical: Logical) -> Array | None:
        """The mask for that history; its rows are in position order, so a ring's window is always a part of it."""
        self._demand_open("mask")
        on = self.layers[layer]
        if on.queries is None:
            raise refusals.no_history("MASK-1")
        if on.branches.branched:
            return self._branched(on, logical, on.queries)
        config = on.cache.config
        parts = logical if config.window is None else (*logical, Window(config.window))
        return mask.built(on.cache.space, parts, mask.History(config.batch, on.queries, on.filled))

    def _branched(self, on: Layer, logical: Logical, queries: int) -> Array | None:
        """The mask where there are branches: windows of any part count positions."""
        config, history = on.cache.config, mask.History(on.cache.config.batch, queries, on.filled)
        mask.demand(logical, history)
        arrays = tuple(part for part in logical if isinstance(part, Explicit))
        if queries == 0:
            return mask.built(on.cache.space, arrays, history)
        sizes = [part.size for part in logical if isinstance(part, Window)]
        window = min([*sizes, *([config.window] if config.window else [])], default=None)
        shown = on.branches.shown(queries, on.seen, window)[None, None]
        return mask.built(on.cache.space, (*arrays, Explicit(shown)), history)

    def offset(self, layer: int) -> int:
        """The position after the last draft."""
        on = self.layers[layer]
        return on.start + (on.branches.depth(-1) if on.drafts else 0)

    def positions(self, layer: int) -> list[int]:
        """The positions of the newest drafts."""
        on = self.layers[layer]
        return [on.start + on.branches.depth(i) - 1 for i in range(on.drafts - (on.queries or 0), on.drafts)]

    def commit(self, n: int) -> None:
        """Keep the first n drafts on every layer, and end the round. Nothing is allocated, so nothing can fail."""
        self._demand_open("commit")
        if self.isolated:
            raise refusals.isolated("DRAFT-28")
        kept = [max(0, min(n, on.drafts)) for on in self.layers.values()]
        if kept and min(kept) != max(kept):
            raise refusals.uneven("DRAFT-23", n, kept)
        if any(on.branches.chain < min(kept) for on in self.layers.values()):
            raise refusals.branches("DRAFT-45", n)
        self._end("committed", kept[0] if kept else 0)

    def choose(self, draft: int) -> None:
        """Keep a draft and those on the way to it, on every layer, and end the round. Nothing is allocated."""
        self._demand_open("choose", "DRAFT-46")
        if self.isolated:
            raise refusals.isolated("DRAFT-46")
        if lacking := [on.drafts for on in self.layers.values() if not 0 <= draft < on.drafts]:
            raise refusals.no_draft("DRAFT-43", draft, lacking[0])
        ways = {on.branches.bits[draft] for on in self.layers.values()}
        if len(ways) > 1:
            raise refusals.ways("DRAFT-44", draft)
        for on in self.layers.values():
            together(on.store, on.seen, on.branches.way(draft))
        self._end("chosen", max(bits.bit_count() for bits in (*ways, 0)))

    def abandon(self) -> None:
        """End the round and keep nothing."""
        self._demand_open("abandon")
        self._end("abandoned", 0)

    def _end(self, how: str, kept: int) -> None:
        self.ended = how
        for on in self.layers.values():
            on.end(kept)
        self._mark(False)

    def _demand_open(self, what: str, clause: str = "DRAFT-24") -> None:
        if self.ended:
            raise refusals.round_over(clause, what, self.ended)


def _layer(cache: Any, isolated: bool) -> Layer:
    """A growing cache can take drafts in; a ring would lose rows to them."""
    return Through(cache) if cache.kind == "growing" and not isolated else Aside(cache)


def _demand(caches: Sequence[Any]) -> None:
    """Refuse caches of other kinds, in another round, or given twice."""
    at: dict[int, int] = {}
    for i, cache in enumerate(caches):
        if cache is None:
            continue
        if not hasattr(cache, "in_round"):
            raise refusals.cannot_speculate("DRAFT-16", i, cache.kind)
        if id(cache) in at:
            raise refusals.twice("DRAFT-15", at[id(cache)], i)
        if cache.in_round:
            raise refusals.in_round("DRAFT-15", "speculate")
        at[id(cache)] = i
