"""Parcels of layers: a part that is packed is another, or one that is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

from hostile.attacks.effects.arrays import same
from hostile.attacks.triggers.trigger import Place
from hostile.attacks.wrapper import Do, Event
from kvspec.errors import Refused
from kvspec.parcels import Parcel

Parts = list[Parcel]


def without_the_last(parts: Parts) -> Parts:
    """All parts but the last."""
    return parts[:-1]


def changed_places(parts: Parts) -> Parts:
    """The last two parts name each other's layer."""
    *others, one, two = parts
    return [*others, said(one, layer=two.descriptor["layer"]), said(two, layer=one.descriptor["layer"])]


def of_the_step_before(parts: Parts) -> Parts:
    """The last part brings one token fewer."""
    return [*parts[:-1], said(parts[-1], offset=max(0, parts[-1].offset - 1))]


def emptied(parts: Parts) -> Parts:
    """The last part has zeros for rows, and their sums."""
    keys, values = (bytes(len(data)) for data in (parts[-1].keys, parts[-1].values))
    made = said(parts[-1], sums=[crc32(keys), crc32(values)])
    return [*parts[:-1], made._replace(keys=keys, values=values)]


def said(part: Parcel, **other: Any) -> Parcel:
    """The same bytes, with something else said of them."""
    return part._replace(descriptor={**part.descriptor, **other})


PACKED: dict[str, tuple[str, Callable[[Parts], Parts]]] = {
    "the last part is left out": ("length", without_the_last),
    "the last two parts change layers": ("wrong sequence", changed_places),
    "the last part is a token behind": ("position", of_the_step_before),
    "the last part is zeros": ("wrong row", emptied),
}
"""Changes of what a cache of layers packs: their sort, and the parts that it gives."""


def packed(alter: Callable[[Parts], Parts], place: Place | None) -> Callable[[Event, Do], Any]:
    """What is packed of several layers is changed."""

    def effect(event: Event, do: Do) -> Any:
        parts = do(*event.given)
        made = alter(parts) if len(parts) > 1 else parts
        event.struck = not same(made, parts)
        return made

    return effect


def stays(place: Place | None) -> Callable[[Event, Do], Any]:
    """The last layer goes on with its own rows, where these are enough."""

    def effect(event: Event, do: Do) -> Any:
        *_, own = event.inner.pack()
        of = own.sort.layer
        parts = [said(own, offset=p.offset) if p.sort.layer == of else p for p in event.given]
        return attempted(event, do, parts)

    return effect


def crossed(place: Place | None) -> Callable[[Event, Do], Any]:
    """The last two layers take each other's parts, where these are enough."""

    def effect(event: Event, do: Do) -> Any:
        layers = sorted({p.sort.layer for p in event.given} - {None})[-2:]
        other = dict(zip(layers, layers[::-1], strict=True))
        return attempted(event, do, [said(p, layer=other.get(p.sort.layer, p.sort.layer)) for p in event.given])

    return effect


def attempted(event: Event, do: Do, parts: Parts) -> Any:
    """Take these parts in place of those that are given; those that are given where they are refused."""
    if not same(parts, list(event.given)):
        try:
            found = do(*parts)
            event.struck = True
            return found
        except Refused:
            pass
    return do(*event.given)


TAKEN: dict[str, tuple[str, Callable[[Place | None], Callable[[Event, Do], Any]]]] = {
    "the last layer stays": ("stale row", stays),
    "the last two layers change parts": ("wrong sequence", crossed),
}
"""What a cache of layers does with parts: its sort, and what makes it."""
