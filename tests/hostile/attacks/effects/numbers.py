"""Positions, lengths, sequences and lists of them are others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hostile.attacks.triggers.trigger import Place
from hostile.attacks.wrapper import Do, Event, Where
from kvspec.errors import Refused

TARGETS: dict[Where, int] = {
    **{Where(kind, "rewind"): 0 for kind in ("growing", "ring", "bounded", "sink", "layers")},
    **{Where(kind, "restore"): 1 for kind in ("growing", "ring")},
    Where("growing", "snapshot"): 0,
    Where("store", "rollback"): 0,
    Where("store", "set_length"): 1,
    Where("store", "scatter"): 1,
    Where("store", "rollback_sequence"): 1,
    Where("page", "truncate"): 1,
    Where("page", "fork"): 1,
    Where("page", "expect"): 0,
    Where("bucket", "cut"): 0,
    Where("round", "commit"): 0,
}
"""The argument of a method that is a position or a length."""

PLACED: dict[Where, int] = {
    Where("store", "read"): 0,
    Where("store", "append"): 2,
    Where("store", "set_length"): 0,
    Where("store", "scatter"): 0,
    Where("store", "rollback_sequence"): 0,
    Where("store", "read_sequence"): 1,
    Where("store", "attend_batch"): 1,
    Where("page", "append"): 2,
    Where("page", "truncate"): 0,
    Where("page", "fork"): 0,
    Where("page", "read_sequence"): 0,
    **{Where("page", method): 0 for method in ("send", "sent", "arrive", "lose")},
    Where("ragged", "read_sequence"): 0,
    Where("bucket", "read"): 0,
    Where("round", "draft"): 0,
    Where("layers", "settle"): 0,
}
"""The argument of a method that names a sequence, a layer, a transfer or a draft."""

LISTS: dict[Where, int] = {
    Where("ragged", "reorder"): 0,
    Where("ragged", "filter"): 0,
    Where("ragged", "trim"): 0,
    Where("page", "gather"): 0,
    Where("layers", "branch"): 2,
    Where("ragged", "feed"): 2,
    Where("ragged", "attend_block"): 3,
}
"""The argument of a method that is a list of numbers."""


def number(at: dict[Where, int], by: int, place: Place | None) -> Callable[[Event, Do], Any]:
    """The operation is done on another number, where that can be done."""

    def effect(event: Event, do: Do) -> Any:
        index, made = at[event.where], list(event.given)
        old = event.number(index)
        if old is None or old + by < 0:
            return do(*made)
        made[index] = old + by
        try:
            found = do(*made)
        except (Refused, ValueError, KeyError, IndexError):
            return do(*event.given)
        event.struck = True
        return found

    return effect


def swapped(place: Place | None) -> Callable[[Event, Do], Any]:
    """The last two numbers of a list change places."""

    def effect(event: Event, do: Do) -> Any:
        index, made = LISTS[event.where], list(event.given)
        numbers = list(made[index]) if len(made) > index else []
        if not numbers:
            return do(*made)
        made[index] = [*numbers[:-2], *numbers[-1:-3:-1]]
        try:
            found = do(*made)
        except (Refused, ValueError, KeyError, IndexError):
            return do(*event.given)
        event.struck = made[index] != numbers
        return found

    return effect
