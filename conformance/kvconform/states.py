"""The reference's state up to renaming rows and shifting positions: what two histories have in common.

For small configurations there are few such states, so all can be visited. Positions past a ring's window are
all alike: an offset beyond W+1 counts as W+1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kvref.growing import Growing
from kvref.ring import Ring
from kvref.snapshot import Snapshot
from kvspec.geometry import Array
from kvspec.rows import ILLEGIBLE, Book
from kvspec.session import Session

Key = tuple[Any, ...]


def key(session: Session, book: Book, names: Iterable[str] = ("s",), caches: Iterable[str] = ("A",)) -> Key:
    """The state of these caches and of the snapshots named, rows numbered by the order in which they are met."""
    numbers: dict[int, int] = {}
    found = [KEYS[session.kinds[c]](session.caches[c], book, numbers) for c in caches if c in session.caches]
    saved = [(n, session.snapshots[n]) for n in names if n in session.snapshots]
    return *found, tuple((n, _saved_key(s, book, numbers)) for n, s in saved)


def _cache_key(cache: Growing | Ring, book: Book, numbers: dict[int, int]) -> Key:
    live = cache.lengths().buffered or 0
    slots = _numbered(cache.rows.keys[:, :, :live], book, numbers)
    spare = len(cache.rows) - live
    if isinstance(cache, Growing):
        return cache.offset, cache.written, spare, slots
    return min(cache.offset, cache.window + 1), cache.written, spare, cache.index, slots


KEYS: dict[str, Callable[[Any, Book, dict[int, int]], Key]] = {"growing": _cache_key, "ring": _cache_key}
"""The state of a cache by its kind; `numbers` are the rows met so far."""


def _saved_key(saved: Snapshot | None, book: Book, numbers: dict[int, int]) -> Key:
    if saved is None or saved.gone:
        return (saved.gone if saved else "none",)
    stop = saved.stop if saved.kind == "growing" else min(saved.stop, (saved.config.window or 0) + 1)
    return saved.stop - saved.start, stop, saved.index, _numbered(saved.rows.keys, book, numbers)


def _numbered(keys: Array, book: Book, numbers: dict[int, int]) -> Key:
    serials = book.read(keys[:1, :1], "k")[0, 0] if keys.size else ()
    return tuple(numbers.setdefault(int(s), len(numbers)) if s != ILLEGIBLE else ILLEGIBLE for s in serials)
