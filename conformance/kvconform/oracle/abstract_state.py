"""The reference's state up to renaming rows and shifting positions: what two histories have in common.

For small configurations there are few such states, so all can be visited. Positions past a ring's window are
all alike: an offset beyond W+1 counts as W+1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from kvref.memory.forms import Kept
from kvref.memory.residual import Residual
from kvspec.geometry import Array, Pair
from kvspec.rows.book import SerialBook
from kvspec.rows.serials import ZEROED
from kvspec.session.driver import Session

if TYPE_CHECKING:  # a trace has caches of few kinds
    from kvref.abilities.batch import Batch
    from kvref.abilities.snapshot import Snapshot
    from kvref.caches.bounded import Bounded
    from kvref.caches.bucket import Bucket
    from kvref.caches.copy import Buffer
    from kvref.caches.growing import Growing
    from kvref.caches.page import Pages
    from kvref.caches.ragged import Ragged
    from kvref.caches.ring import Ring
    from kvref.caches.sink import Sink
    from kvref.caches.store import Store

Key = tuple[Any, ...]


def key(session: Session, book: SerialBook, names: Iterable[str] = ("s",), caches: Iterable[str] = ("A",)) -> Key:
    """The state of these caches and of the snapshots named, rows numbered by the order in which they are met."""
    numbers: dict[int, int] = {}
    found = [_seen(session, c, book, numbers) for c in caches if c in session.caches]
    saved = [(n, session.snapshots[n]) for n in names if n in session.snapshots]
    rounds = tuple((n, _round_key(r, book, numbers)) for n, r in session.rounds.items() if r.open)
    return *found, tuple((n, _saved_key(s, book, numbers)) for n, s in saved), rounds


def _seen(session: Session, name: str, book: SerialBook, numbers: dict[int, int]) -> Key:
    """The state of a cache by its name."""
    book.look_at(session.configs[name])
    cache = session.caches[name]
    of_class = next((_KEYS[c.__name__] for c in type(cache).__mro__ if c.__name__ in _KEYS), None)
    key: Key = of_class(cache, book, numbers) if of_class else cache.key()
    return key


def _growing_key(cache: Growing, book: SerialBook, numbers: dict[int, int]) -> Key:
    live, spare, slots = _slots(cache, book, numbers)
    over = (min(cache.rows.over, live),) if isinstance(cache.rows, Residual) else ()
    return cache.offset, cache.written, spare, slots, *over


def _ring_key(ring: Ring, book: SerialBook, numbers: dict[int, int]) -> Key:
    _, spare, slots = _slots(ring, book, numbers)
    return min(ring.offset, ring.window + 1), ring.written, spare, ring.index, slots


def _slots(cache: Growing | Ring, book: SerialBook, numbers: dict[int, int]) -> tuple[int, int, Key]:
    """How many slots have rows and how many have none, and the rows."""
    live = cache.lengths().buffered or 0
    return live, len(cache.rows) - live, _numbered(cache.rows.shown(slice(live)).keys, book, numbers)


def _bounded_key(cache: Bounded, book: SerialBook, numbers: dict[int, int]) -> Key:
    """Numbers of rows and slots; which rows they are is left out, as the row of position p is always in slot p."""
    return cache.offset, cache.written, len(cache.rows)


def _sink_key(sink: Sink, book: SerialBook, numbers: dict[int, int]) -> Key:
    """Offsets past a drop are alike; which rows are held follows from the rest, but for those that were chosen."""
    chosen = (sink.offset - sink.chosen.at,) if sink.chosen.at and sink.count <= sink.most else ()
    return min(sink.count, sink.most + 1), sink.written, sink.index, sink.live, *chosen


def _buffer_key(buffer: Buffer, book: SerialBook, numbers: dict[int, int]) -> Key:
    slots = buffer.slots if buffer.config.form is None else buffer.shown()
    serials = book.read(np.asarray(slots.keys).transpose(1, 0, 2)[None], "k")[0, 0]
    return tuple(ZEROED if s == ZEROED else numbers.setdefault(int(s), len(numbers)) for s in serials)


def _store_key(store: Store, book: SerialBook, numbers: dict[int, int]) -> Key:
    layers = (store.kept.decoded(Pair(*rows)).keys for rows in zip(store.keys, store.values, strict=True))
    slots = tuple(_numbered(keys[None], book, numbers) for keys in layers)
    return store.config, tuple(store.lengths_), slots, _batch_key(store.batch_)


def _batch_key(batch: Batch | None) -> Key:
    """Which rows a sequence holds is left out: nothing that is done to a batch depends on it."""
    return () if batch is None else (batch.places, tuple(batch.lengths), tuple(map(tuple, batch.held)))


def _pages_key(pages: Pages, book: SerialBook, numbers: dict[int, int]) -> Key:
    """Lengths and tables; which rows a sequence holds is left out, as nothing that is done depends on it."""
    flying = ((-1 - n, one.expected, one.length, *one.table) for n, one in sorted(pages.in_flight.items()))
    return *((number, one.length, *one.table) for number, one in sorted(pages.in_use.items())), *flying


def _ragged_key(ragged: Ragged, book: SerialBook, numbers: dict[int, int]) -> Key:
    """The lengths, where all beyond a window count as one, and how many rows are kept. Which rows are kept is left
    out, because no operation depends on it."""
    window = ragged.config.window
    if window is None:
        return tuple(ragged.lengths)
    return tuple((min(n, window + 1), kept) for n, kept in zip(ragged.lengths, ragged.held, strict=True))


def _bucket_key(bucket: Bucket, book: SerialBook, numbers: dict[int, int]) -> Key:
    """Numbers of rows, and where the newest lies; which rows they are is left out, as nothing depends on it."""
    encoded = None if bucket.encoded is None else bool(bucket.encoded.keys.size)
    handles = bucket.handles if bucket.pending and not bucket.stale else None
    slot = bucket.past_ - 1 if handles is None else handles.bound
    flags = bucket.handles is not None, bucket.stale, bucket.blocked and not bucket.stale
    return bucket.past_, bucket.rows.keys.shape[3], bucket.bound_, slot, flags, encoded


_KEYS: dict[str, Callable[[Any, SerialBook, dict[int, int]], Key]] = {
    "Growing": _growing_key,
    "Ring": _ring_key,
    "Bounded": _bounded_key,
    "Sink": _sink_key,
    "Buffer": _buffer_key,
    "Store": _store_key,
    "Pages": _pages_key,
    "Ragged": _ragged_key,
    "Bucket": _bucket_key,
}
"""The state of a cache by its class, which is read only with its kind; caches of other classes give their key."""


def _saved_key(saved: Snapshot | None, book: SerialBook, numbers: dict[int, int]) -> Key:
    if saved is None or saved.gone:
        return (saved.gone if saved else "none",)
    full = None if saved.config.window is None else saved.config.window + (saved.config.sinks or 0)
    stop = saved.stop if full is None else min(saved.stop, full + 1)
    return (
        0 if saved.config.sinks else saved.stop - saved.start,
        stop,
        saved.index,
        _numbered(Kept(saved.config).decoded(saved.rows).keys, book, numbers),
    )


def _round_key(round_: Any, book: SerialBook, numbers: dict[int, int]) -> Key:
    """An open round: what its drafts see, and which rows they are."""
    layers = round_.inner.layers.items()
    drafts = (
        (i, x.before, _numbered(x.rows.shown(slice(None)).keys, book, numbers), tuple(x.tree.on)) for i, x in layers
    )
    return round_.letters, round_.isolated, tuple(drafts)


def _numbered(keys: Array, book: SerialBook, numbers: dict[int, int]) -> Key:
    serials = book.read(keys[:1, :1], "k")[0, 0] if keys.size else ()
    return tuple(numbers.setdefault(int(s), len(numbers)) if s >= 0 else int(s) for s in serials)
