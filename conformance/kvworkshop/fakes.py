"""Fakes for the harness itself: adapters that know the shape of answers and little else, each with its verdict.

They are written over the reference's growing cache and ring, and declare both unless they say otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from kvadapters.reference import Reference
from kvconform.bugs.mutant import Mutant, says
from kvref.caches.growing import Growing
from kvref.caches.ring import Ring
from kvspec.contract import Cache, Pair, Readable
from kvspec.errors import Refused
from kvspec.geometry import Array, Config
from kvspec.operations.input_forms import INPUTS
from kvspec.registry import CACHES

OF_THE_ADAPTER = {"draft": ("speculate",), "mem": ("fit",), "residency": ("meter", "place"), "rope": ("rotate",)}
OF_A_CACHE = {
    "mask": ("mask",),
    "snapshot": ("snapshot", "restore", "merge", "split"),
    "mem": ("plan", "held"),
    "attention": ("attend",),
}


class Fake(Reference):
    """The reference's growing cache under another name. Fakes have caches of their own; `more` is added to the
    description."""

    growing: ClassVar[Any] = Growing
    ring: ClassVar[Any] = Ring
    chapters: ClassVar[dict[str, Any]] = {"growing": {"level": "storage", "grows": "step"}}
    more: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        for chapter, methods in OF_THE_ADAPTER.items():
            for method in () if chapter in self.chapters else methods:
                setattr(self, method, None)  # what is not declared is not offered

    def describe(self) -> dict[str, Any]:
        said = {"name": type(self).__name__, "refusals": "cited", "inputs": list(INPUTS[1:])}
        return {**said, "chapters": self.chapters, **self.more}

    @property
    def caches(self) -> dict[str, Any]:  # type: ignore[override]
        return {p: getattr(self, p) for p in CACHES if p in self.chapters}

    def open(self, kind: str, config: Config) -> Cache:
        cache: Any = super().open(kind, config)
        for name, methods in OF_A_CACHE.items():
            for method in () if name in self.chapters else methods:
                setattr(cache, method, None)
        return cache  # type: ignore[no-any-return]


STORED = {"level": "storage", "grows": "step"}


class FakeOfBoth(Fake):
    """A fake that declares a growing cache and a ring, both with the methods of `of` over the reference's."""

    def __init_subclass__(cls, of: type | None = None) -> None:
        over = () if of is None else (of,)
        cls.growing, cls.ring = (type(base.__name__, (*over, base), {}) for base in (Growing, Ring))

    chapters: ClassVar[dict[str, Any]] = dict.fromkeys(("growing", "ring"), STORED)


def one_row(pair: Pair | None, value: float) -> Pair | None:
    """The pair with its last key row overwritten."""
    if pair is not None and pair.keys.shape[2]:
        pair.keys[:, :, -1] = value
    return pair


class _Constants:
    def read(self, what: Readable) -> Pair | None:
        pair: Pair | None = super().read(what)  # type: ignore[misc]
        return pair and Pair(*(np.ones_like(a) for a in pair))


class ReturnsConstants(FakeOfBoth, of=_Constants):
    """Returns rows of the right shape that are all ones."""


class _Refusing:
    def append(self, keys: Array, values: Array) -> None:
        raise Refused("", "not today")


class RefusesEverything(FakeOfBoth, of=_Refusing):
    """Refuses to append anything at all."""


class ClaimsEverything(Reference):
    """Declares every chapter and level, and a ring that rewinds without limit, but has only a growing cache."""

    def describe(self) -> dict[str, Any]:
        whole = super().describe()["chapters"]
        ring = {"level": "visible", "rewind": -1}
        return {"name": "ClaimsEverything", "refusals": "cited", "chapters": {**whole, "ring": ring}}

    def open(self, kind: str, config: Config) -> Cache:
        return super().open("growing", config)


class _Idle:
    def append(self, keys: Array, values: Array) -> None:
        pass


class DoesNothing(FakeOfBoth, of=_Idle):
    """Takes everything, and holds nothing."""


class RightTheFirstTimeOnly(FakeOfBoth):
    """Its first cache is right; every later one returns another newest row."""

    opened: ClassVar[list[int]] = [0]

    def open(self, kind: str, config: Config) -> Cache:
        self.opened[0] += 1
        cache: Any = super().open(kind, config)
        if self.opened[0] > 1:
            read = cache.read
            cache.read = lambda what: one_row(read(what), 1.0)
        return cache  # type: ignore[no-any-return]


class _Flaky:
    reads: ClassVar[list[int]] = [0]

    def read(self, what: Readable) -> Pair | None:
        self.reads[0] += 1
        pair: Pair | None = super().read(what)  # type: ignore[misc]
        return one_row(pair, 3.0) if self.reads[0] % 37 == 0 else pair


class Nondeterministic(FakeOfBoth, of=_Flaky):
    """Wrong at every 37th read."""


class _Keeping:
    def append(self, keys: Array, values: Array) -> None:
        cache: Any = self
        first = cache.offset == 0
        super().append(keys, values)  # type: ignore[misc]
        if first and cache.offset:
            cache.rows.keys, cache.rows.values = keys, values


class KeepsCallersArrays(FakeOfBoth, of=_Keeping):
    """Keeps the caller's arrays instead of copies where they are all it holds."""

    chapters: ClassVar[dict[str, Any]] = dict.fromkeys(("growing", "ring"), "storage")


class _Live:
    def read(self, what: Readable) -> Pair | None:
        cache: Any = self
        if what == "view" or (what == "state" and not cache.written):
            return super().read(what)  # type: ignore[misc, no-any-return]
        live = cache.lengths().buffered
        return Pair(cache.rows.keys[:, :, :live], cache.rows.values[:, :, :live])


class ReturnsLiveViews(FakeOfBoth, of=_Live):
    """Hands out its own storage."""


VERDICTS: dict[type[Any], tuple[str, ...]] = {
    ReturnsConstants: ("GROW-2", "RING-1"),
    RefusesEverything: ("GROW-1", "RING-1"),
    ClaimsEverything: ("RING-5", "STORE-3"),
    DoesNothing: ("GROW-2", "RING-2"),
    RightTheFirstTimeOnly: ("GROW-2", "RING-1"),
    Nondeterministic: ("GROW-2", "RING-1"),
    KeepsCallersArrays: ("CACHE-4",),
    ReturnsLiveViews: ("CACHE-4",),
}
"""Each fake, and the clauses that must be blamed on it, one of each chapter that it is judged by."""


def mutants() -> Iterator[Mutant]:
    """Every fake, once for each clause that it must break."""
    for fake, clauses in VERDICTS.items():
        for clause in clauses:
            name = f"fake/{fake.__name__} {clause}"
            yield Mutant(name, "fake", says(fake), (clause,), fake)
