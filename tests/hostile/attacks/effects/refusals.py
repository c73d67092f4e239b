"""Nothing is done, a refusal is lost or changes something, a row that is kept is another's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hostile.attacks.effects.arrays import same
from hostile.attacks.triggers.trigger import Place
from hostile.attacks.wrapper import Do, Event, length
from kvspec.errors import Unsupported


def left_out(place: Place | None) -> Callable[[Event, Do], Any]:
    """Nothing is done, and nothing is said."""

    def effect(event: Event, do: Do) -> Any:
        event.struck = True

    return effect


def taken(place: Place | None) -> Callable[[Event, Do], Any]:
    """What must be refused is taken, and nothing is done."""

    def effect(event: Event, do: Do) -> Any:
        try:
            return do(*event.given)
        except Unsupported:
            raise
        except Exception:
            event.struck = True
            return None

    return effect


def changed(place: Place | None) -> Callable[[Event, Do], Any]:
    """What is refused loses the newest row before."""

    def effect(event: Event, do: Do) -> Any:
        try:
            return do(*event.given)
        except Unsupported:
            raise
        except Exception:
            event.struck = shorter(event)
            raise

    return effect


def shorter(event: Event) -> bool:
    """Have the cache lose its newest row, in its own way; tell whether that could be done."""
    cache, n = event.inner, length(event.inner)
    try:
        if n and event.where.kind == "page":
            ends = cache.sequences()
            cache.truncate(ends.index(max(ends)), n - 1)
        elif n and event.where.kind == "ragged":
            cache.trim([int(end == n) for end in cache.sequences()])
        elif n:
            getattr(cache, LOWER.get(event.where.kind, "rewind"))(n - 1)
    except Exception:
        return False
    return n > 0


LOWER = {"store": "rollback", "bucket": "cut"}
"""What makes a cache shorter, where it is no rewind."""


def spoiled(place: Place | None) -> Callable[[Event, Do], Any]:
    """The operation is done; then the newest row that is left is another one's."""

    def effect(event: Event, do: Do) -> Any:
        found = do(*event.given)
        event.struck = rewritten(event)
        return found

    return effect


def rewritten(event: Event) -> bool:
    """Write the newest row of a growing cache or a store anew, with the row before in its last half."""
    cache, n = event.inner, length(event.inner)
    if n < 2:
        return False
    if event.where.kind == "store":
        layer = list(cache.lengths()).index(n)
        keys, values = (a[None, :, -2:] for a in cache.read(layer))
        cache.set_length(layer, n - 1)
        cache.append(keys[:, :, :1], values[:, :, :1], layer)
        return not same([keys[:, :, :1]], [keys[:, :, 1:]])
    keys, values = (a[:, :, -2:-1] for a in cache.read("state"))
    cache.rewind(n - 1)
    cache.append(keys, values)
    cache.rewind(n)
    return True


def looked_up(place: Place | None) -> Callable[[Event, Do], Any]:
    """What was sent are the rows that the longest sequence has now."""

    def effect(event: Event, do: Do) -> Any:
        found, ends = do(*event.given), event.inner.sequences()
        if max(ends, default=-1) < 0:
            return found
        made = event.inner.pack(ends.index(max(ends)))
        event.struck = not same(made, found)
        return made

    return effect
