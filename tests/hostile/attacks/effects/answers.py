"""What is told is another: masks, states, numbers; and queries and rows that are asked otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hostile.attacks.effects.arrays import same
from hostile.attacks.triggers.trigger import Place
from hostile.attacks.wrapper import Do, Event
from kvspec.geometry import Array
from kvspec.masks import CAUSAL


def masked(place: Place | None) -> Callable[[Event, Do], Any]:
    """The last query sees what the first sees."""

    def effect(event: Event, do: Do) -> Any:
        found = do(*event.given)
        if found is None or not found.size:
            return found
        made = np.array(found)
        made[:, :, -1] = made[:, :, 0]
        event.struck = not same(made, found)
        return made

    return effect


def seen_alike(place: Place | None) -> Callable[[Event, Do], Any]:
    """The queries of the last layer see as those of the layer before."""

    def effect(event: Event, do: Do) -> Any:
        made = np.array(do(*event.given))
        if len(made) > 1:
            event.struck = not same(made[-1], made[-2])
            made[-1] = made[-2]
        return made

    return effect


def state_doubled(states: list[Array]) -> Array:
    """Twice the last state."""
    return states[-1] + states[-1]


def state_emptied(states: list[Array]) -> Array:
    """Zeros in place of the last state."""
    return np.zeros_like(states[-1])


def state_of_the_first(states: list[Array]) -> Array:
    """The first state in place of the last."""
    return states[0].copy()


FOLDED: dict[str, tuple[str, Callable[[list[Array]], Array]]] = {
    "the last state is doubled": ("scale", state_doubled),
    "the last state is zeros": ("wrong row", state_emptied),
    "the last state is the first": ("wrong sequence", state_of_the_first),
}
"""Changes of the states of layers: their sort, and what takes the place of the last one."""


def folded(alter: Callable[[list[Array]], Array], place: Place | None) -> Callable[[Event, Do], Any]:
    """The last state that is told is another."""

    def effect(event: Event, do: Do) -> Any:
        found = dict(do(*event.given))
        if found:
            last, made = max(found), alter([np.asarray(found[layer]) for layer in sorted(found)])
            event.struck = not same(made, np.asarray(found[last]))
            found[last] = made
        return found

    return effect


def one_more(place: Place | None) -> Callable[[Event, Do], Any]:
    """A number that is told is one too large; a yes is a no."""

    def effect(event: Event, do: Do) -> Any:
        found = do(*event.given)
        event.struck = True
        if isinstance(found, bool | np.bool_):
            return not found
        if isinstance(found, int):
            return found + 1
        if isinstance(found, list):
            return [*found[:-1], found[-1] + (found[-1] >= 0)] if found else found
        told = (found[0] + 1, *found[1:])
        return type(found)(*told) if hasattr(found, "_fields") else told

    return effect


def unmasked(place: Place | None) -> Callable[[Event, Do], Any]:
    """Queries see as if their mask were causal."""

    def effect(event: Event, do: Do) -> Any:
        made = list(event.given)
        made[3] = made[3]._replace(through=CAUSAL)
        event.struck = made[3] != event.given[3]
        return do(*made)

    return effect


def turned(place: Place | None) -> Callable[[Event, Do], Any]:
    """Rows are rotated for the position behind."""

    def effect(event: Event, do: Do) -> Any:
        made = list(event.given)
        made[1] = np.asarray(made[1]) + 1
        event.struck = bool(np.size(event.given[0]))
        return do(*made)

    return effect


def counted(place: Place | None) -> Callable[[Event, Do], Any]:
    """A meter counts itself too, so that each operation costs one more of everything."""

    def effect(event: Event, do: Do) -> Any:
        event.struck, more = True, event.life.calls["meter"]
        return {name: n + more for name, n in do().items()}

    return effect
