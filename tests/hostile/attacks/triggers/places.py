"""At one place among several: a head, a sequence, a layer, an element."""

from __future__ import annotations

from collections.abc import Iterator

from hostile.attacks.triggers.axes import axes
from hostile.attacks.triggers.trigger import Place, Trigger

PLACES = {
    "h": ("head", (4, 9, 16, 40)),
    "b": ("sequence", (5, 17, 32)),
    "s": ("sequence", (5, 17)),
    "l": ("layer", (7, 33, 60)),
    "d": ("element", (16, 64, 128, 256)),
}


def places() -> Iterator[Trigger]:
    """At one place among several: the arrays must have it."""
    for axis, (name, indices) in PLACES.items():
        for index in indices:
            said = f"from {name} {index} on" if axis == "d" else f"{name} {index}"
            yield Trigger(
                f"{said} [{axis}]", "place", lambda e: True, lambda w, a=axis: a in axes(w), Place(axis, index)
            )
