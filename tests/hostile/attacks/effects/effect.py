"""What an effect is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from hostile.attacks.triggers.trigger import Place
from hostile.attacks.wrapper import Do, Event, Where
from kvspec.geometry import Array

Alter = Callable[[Array, str, Event], Array]
"""Gives an array of these axes changed."""

Make = Callable[["Place | None"], Callable[[Event, Do], Any]]


class Effect(NamedTuple):
    """What happens. `fields`: the observables in which it shows, for the clauses that are right to blame."""

    id: str
    sort: str
    make: Make
    suits: Callable[[Where], bool]
    fields: tuple[str, ...]
