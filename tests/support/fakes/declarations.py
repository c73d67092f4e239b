"""Fake adapters that declare something: what is so and unlike the reference, or what is not so.

Used as `support.fakes.declarations:OnlyF32`. Correct caches that are stored otherwise are in
`kvworkshop.correct_variants`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from kvadapters.reference import Reference
from kvref.caches.growing import Growing
from kvref.caches.ring import Ring
from kvspec.contract import Cache
from kvspec.errors import Unsupported
from kvspec.geometry import Array, Config
from kvspec.masks import Logical, Window
from kvworkshop.correct_variants import Whole, WholeRing
from kvworkshop.fakes import Fake
from support.fakes.adapters import AcceptsAnyRewind

CLIPS = {"clause": "CACHE-7", "reason": "rewinds are clipped", "model": "missing-refusal/GrowingClamps"}
"""A known deviation by its model."""

OUTCOME = {"clause": "CACHE-7", "reason": "rewinds are clipped", "shows": "expected refused CACHE-7, found ok"}
"""A known deviation by what it shows; its trace is missing."""


class SeesTooMuch(Whole):
    """Keeps the whole history, and masks a window that is one row too wide."""

    chapters: ClassVar[dict[str, Any]] = {"ring": {"level": "visible", "rewind": -1}, "mask": "visible"}

    class ring(WholeRing):
        def mask(self, logical: Logical) -> Array | None:
            return Growing.mask(self, (*logical, Window(self.window + 1)))


class ForgetsToRewind(Whole):
    """Keeps the whole history; after a rewind the dead rows stay, and new ones come behind them."""

    chapters: ClassVar[dict[str, Any]] = {"ring": {"level": "visible", "rewind": -1}, "mask": "visible"}

    class ring(WholeRing):
        def rewind(self, to: int) -> None:
            there = self.offset
            super().rewind(to)
            self.offset = max(there - 1, to)


class Preallocates(Fake):
    """No lie: allocates much at once, and says that it grows as it likes."""

    class growing(Growing):
        def __init__(self, config: Config) -> None:
            super().__init__(config)
            self.config = config.changed(step=128)

    class ring(Ring):
        def __init__(self, config: Config) -> None:
            super().__init__(config)
            self.config = config.changed(step=self.window)

    chapters: ClassVar[dict[str, Any]] = {"growing": "storage", "ring": "storage", "mask": "storage"}


class OnlyF32(Fake):
    """No lie: knows one dtype, and says so."""

    more: ClassVar[dict[str, Any]] = {"dtypes": ["f32"]}
    chapters: ClassVar[dict[str, Any]] = dict.fromkeys(("growing", "ring", "mask", "snapshot"), "storage")

    def open(self, kind: str, config: Config) -> Cache:
        if config.dtype in ("f16", "bf16"):
            raise Unsupported("f32 alone")
        return super().open(kind, config)


class DoesF16Undeclared(Fake):
    """Declares f32 alone, and opens a cache of f16."""

    more: ClassVar[dict[str, Any]] = {"dtypes": ["f32"]}


class OneRowAtATime(Fake):
    """No lie: takes one row an append, and says so."""

    class growing(Growing):
        def append(self, keys: Array, values: Array) -> None:
            if max(keys.shape[2], values.shape[2]) > 1:
                raise Unsupported("one row at a time")
            super().append(keys, values)

    more: ClassVar[dict[str, Any]] = {"limits": {"append": 1}}


class TakesMoreThanItSays(Fake):
    """Declares appends of one row at most, and takes two."""

    more: ClassVar[dict[str, Any]] = {"limits": {"append": 1}}


class DeclaresSnapshotWithoutIt(Fake):
    """Declares the chapter snapshot; its caches have no such method."""

    chapters: ClassVar[dict[str, Any]] = {"growing": "storage", "snapshot": "storage"}

    class growing(Growing):
        snapshot = None  # type: ignore[assignment]


class DoesSnapshotsUndeclared(Fake):
    """Takes snapshots, and does not declare them."""

    def open(self, kind: str, config: Config) -> Cache:
        return Reference.open(self, kind, config)


class RaisesItsOwn(Fake):
    """No lie: has no masks and one dtype, and answers what it does not claim with errors of its own."""

    more: ClassVar[dict[str, Any]] = {"dtypes": ["f16"], "refusals": "own"}
    chapters: ClassVar[dict[str, Any]] = {"growing": "visible"}

    class growing(Growing):
        def mask(self, logical: Logical) -> Array | None:
            raise NotImplementedError("masks are made elsewhere")

    def open(self, kind: str, config: Config) -> Cache:
        if kind != "growing" or config.dtype != "f16":
            raise KeyError(kind)
        return super().open(kind, config)


class CitesAndRaises(RaisesItsOwn):
    """The same, and says that it refuses as the contract says."""

    more: ClassVar[dict[str, Any]] = {**RaisesItsOwn.more, "refusals": "cited"}


class RefusesButChanges(Fake):
    """Does not declare the chapter mask, refuses it, and forgets a row as it does."""

    class growing(Growing):
        def __init__(self, config: Config) -> None:
            super().__init__(config)
            self.mask = self.refuse  # type: ignore[method-assign]

        def refuse(self, logical: Logical) -> Array | None:
            self.offset -= 1
            raise Unsupported("no masks")

    def open(self, kind: str, config: Config) -> Cache:
        cache: Any = Reference.open(self, kind, config)
        cache.snapshot = None
        return cache  # type: ignore[no-any-return]


class KnownDeviation(AcceptsAnyRewind):
    """Takes a rewind beyond its ends, and says that this is known."""

    more: ClassVar[dict[str, Any]] = {"known": [CLIPS]}


class KnownAndMore(KnownDeviation):
    """Says the same, and takes a rewind below its start of a longer cache as none at all."""

    class growing(Growing):
        def rewind(self, to: int) -> None:
            super().rewind(self.offset if to < 0 < self.offset else min(max(to, 0), self.offset))


class KnownOutcome(AcceptsAnyRewind):
    """Says that one trace is known."""

    more: ClassVar[dict[str, Any]] = {"known": [{**OUTCOME, "trace": "growing kv_heads=1: rewind 1"}]}


class KnownButRight(Fake):
    """Declares a deviation that it does not have."""

    more: ClassVar[dict[str, Any]] = {"known": [CLIPS | {"reason": "rewinds were clipped once"}]}


class KnownOfNoClause(Fake):
    """Declares a deviation from a clause that there is not."""

    more: ClassVar[dict[str, Any]] = {"known": [CLIPS | {"clause": "GROW-700"}]}


class KnownByAnyMessage(AcceptsAnyRewind):
    """Declares an outcome that any failure of its sort has."""

    more: ClassVar[dict[str, Any]] = {"known": [{**OUTCOME, "shows": "found *", "trace": "growing: rewind 1"}]}


class KnownByCode(AcceptsAnyRewind):
    """Declares a model that is code."""

    more: ClassVar[dict[str, Any]] = {"known": [CLIPS | {"model": "engine.py:Clips"}]}


class KnownWholeClause(AcceptsAnyRewind):
    """Declares that it breaks a clause, and does not say how."""

    more: ClassVar[dict[str, Any]] = {"known": {"CACHE-7": "rewinds are clipped"}}
