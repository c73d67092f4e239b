"""Two adapters between which every parcel crosses: `support.engines.interchange:reference__opencl`.

A cache that unpacks becomes one of the other adapter, and goes on there; so the chapter MOVE judges each side by
what the other packs. A pool stays: of an odd page size with the first adapter, of an even one with
the second.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from kvadapters.find import load
from kvspec.contract import CHAPTERS
from kvspec.geometry import Config, Pair
from kvspec.parcels import Parcel

KINDS = ("growing", "ring", "bounded", "sink", "layers")
CLAIMS = (*KINDS, "page", "mask", "forms", "parcels")


class Crossing:
    """A cache here, and what opens one there."""

    def __init__(self, kind: str, config: Config, here: Any, there: Any) -> None:
        self.kind, self.config, self.here, self.there = kind, config, here, there
        self.cache = here.open(kind, config)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cache, name)

    def unpack(self, *parts: Parcel) -> None:
        """Go on there, if what arrives is taken there."""
        cache = self.there.open(self.kind, self.config)
        cache.unpack(*parts)
        self.cache, self.here, self.there = cache, self.there, self.here


class Between:
    """The adapter of a pair."""

    def __init__(self, first: str, second: str) -> None:
        self.names, self.adapters = (first, second), (load(first), load(second))

    def describe(self) -> dict[str, Any]:
        """What both are, and claim of caches and parcels."""
        return {"name": " and ".join(self.names), "chapters": {c: "visible" for c in CHAPTERS if c in CLAIMS}}

    def open(self, kind: str, config: Config) -> Any:
        """A cache of the first adapter."""
        if kind in KINDS:
            return Crossing(kind, config, *self.adapters)
        return self.adapters[(config.page_size or 0) % 2 == 0].open(kind, config)


class OfEngines(Between):
    """The adapter of a pair of which one at least is a released engine: what all of these claim."""

    def describe(self) -> dict[str, Any]:
        """Growing caches of one sequence, with heads of one width."""
        growing = {"level": "visible", "with": ["offset", "rewind", "bits", "zero", "batch"]}
        parcels = {"level": "visible", "with": ["pack", "unpack"]}
        limits = {"dims": {"equal": True}, "batch": 1, "rows": 1024}
        said = {"dtypes": ["f32", "f16"], "limits": limits, "chapters": {"growing": growing, "parcels": parcels}}
        return {"name": " and ".join(self.names), **said}


class Mislabelled(Between):
    """The second adapter names the axes of what it packs in an order in which they do not lie."""

    def __init__(self) -> None:
        super().__init__("reference", "reference")
        second = self.adapters[1]
        second.caches = {kind: mislabelling(cache) for kind, cache in second.caches.items()}  # type: ignore[attr-defined]


class ScaleLeftBehind(Between):
    """Rows in a form come to the second adapter with the scale of the first of them."""

    def __init__(self) -> None:
        super().__init__("reference", "reference")
        second = self.adapters[1]
        second.caches = {kind: rescaling(cache) for kind, cache in second.caches.items()}  # type: ignore[attr-defined]


def rescaling(cache: Any) -> Any:
    """A cache that does so."""

    def unfolded(self: Any, part: Parcel) -> Pair:
        found = Pair(*(rows.copy() for rows in cache.unfolded(self, part)))
        for rows in found if self.config.form and found.keys.shape[2] else ():
            rows[..., -4:] = rows[:, :, :1, -4:].copy()
        return found

    return type("Rescaling", (cache,), {"unfolded": unfolded}) if hasattr(cache, "unfolded") else cache


def mislabelling(cache: Any) -> Any:
    """A cache that does so."""

    def pack(self: Any, *of: int) -> Parcel | list[Parcel]:
        made: Parcel | list[Parcel] = cache.pack(self, *of)
        return list(map(mislabelled, made)) if isinstance(made, list) else mislabelled(made)

    return type("Mislabelling", (cache,), {"pack": pack}) if hasattr(cache, "pack") else cache


def mislabelled(made: Parcel) -> Parcel:
    """The same bytes, named in another order."""
    return made._replace(descriptor={**made.descriptor, "order": "PNHBD"})


def name(first: str, second: str) -> str:
    """Name the pair as `kvconform run` takes it."""
    return f"{__name__}:{'__'.join((first, second)).replace('-', '_')}"


def __getattr__(pair: str) -> Any:
    first, found, second = pair.partition("__")
    if not (first and found and second):
        raise AttributeError(pair)
    return partial(Between, first.replace("_", "-"), second.replace("_", "-"))
