"""What a trigger is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hostile.attacks.wrapper import Event, Where


class Place(NamedTuple):
    """Where in its arrays an effect happens: an axis by its letter, and an index; elements from an index on."""

    axis: str
    index: int


class Trigger(NamedTuple):
    """A condition on a call. `suits` tells on which methods it can be met at all."""

    id: str
    sort: str
    when: Callable[[Event], bool]
    suits: Callable[[Where], bool] = lambda where: True
    place: Place | None = None
