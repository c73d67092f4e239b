"""Rows that are given or told are others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hostile.attacks.effects.effect import Alter
from hostile.attacks.effects.rows import along
from hostile.attacks.triggers.axes import axes
from hostile.attacks.triggers.trigger import Place
from hostile.attacks.wrapper import Do, Event
from kvspec.contract import Pair
from kvspec.geometry import Array


def at_place(alter: Alter, axis: str, place: Place | None) -> Alter:
    """The change at one place only: elsewhere the array is as it was. A change along the axis of the place puts the
    first part there."""
    if place is None:
        return alter
    at, first, elements = place.axis, place.index, place.axis == "d"
    if axis == at and not elements:
        alter = along(at, lambda n: [0 if i == first else i for i in range(n)])

    def placed(array: Array, letters: str, event: Event) -> Array:
        where = (*[slice(None)] * letters.index(at), slice(first, None if elements else first + 1))
        made, changed = array.copy(), alter(array, letters, event)
        if changed.shape == array.shape:
            made[where] = changed[where]
        return made

    return placed


def given(alter: Alter, axis: str, place: Place | None) -> Callable[[Event, Do], Any]:
    """The operation is done on other rows than it was given."""
    change = at_place(alter, axis, place)

    def effect(event: Event, do: Do) -> Any:
        letters, made = axes(event.where), list(event.given)
        for i, a in enumerate(made):
            taken = isinstance(a, np.ndarray) and a.ndim == len(letters) and a.size
            if taken and not (event.where.method in QUERIED and i == 0):
                made[i] = alike(change(np.asarray(a), letters, event), a)
        found = do(*made)
        event.struck = not same(made, event.given)
        return found

    return effect


QUERIED = ("attend", "attend_batch", "attend_block", "decode", "block", "cross")
"""Methods whose first argument is queries."""


def alike(made: Array, before: Any) -> Any:
    """The array in place of one before: in its type, which may say where it is; itself where nothing changed."""
    return before if same(made, np.asarray(before)) else made.view(type(before))


def answered(alter: Alter, axis: str, place: Place | None) -> Callable[[Event, Do], Any]:
    """What the operation gives is changed, in the array that it was to be written to if there is one."""
    change = at_place(alter, axis, place)

    def effect(event: Event, do: Do) -> Any:
        found, letters = do(*event.given), axes(event.where)
        if found is None:
            return found
        if isinstance(found, list):
            *others, last = found  # the pairs of several layers
            changed_ = Pair(*(change(np.asarray(a), letters, event) for a in last))
            event.struck = not same(changed_, last)
            return [*others, changed_]
        alone = isinstance(found, np.ndarray)
        parts = [found] if alone else list(found)
        made = [alike(change(np.asarray(a), letters, event), a) if np.size(a) else a for a in parts]
        event.struck = not same(made, parts)
        if any(a is found for a in event.given) and made[0].shape == found.shape:
            found[...] = made[0]
            return found
        return made[0] if alone else Pair(*made)

    return effect


def same(made: Any, before: Any) -> bool:
    """Tell whether arrays and numbers are what they were, to the bit."""
    if isinstance(before, np.ndarray):
        return made.shape == before.shape and made.tobytes() == before.tobytes()
    if isinstance(before, tuple | list):
        return len(made) == len(before) and all(map(same, made, before))
    return bool(made is before or made == before)
