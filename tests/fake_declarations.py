"""Fake adapters that declare something: what is so and unlike the reference, or what is not so.

Used as `fake_declarations:Whole`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from fake_adapters import AcceptsAnyRewind, Fake

from kvadapters.reference import Reference
from kvref import snapshot
from kvref.growing import Growing
from kvref.ring import Ring
from kvref.snapshot import Snapshot
from kvspec import refusals
from kvspec.contract import Cache, Lengths, Pair, Readable
from kvspec.errors import Refused, Unsupported
from kvspec.geometry import Array, Config
from kvspec.masks import Logical, Window


class Whole(Fake):
    """No lie: keeps the whole history, masks the window, and can therefore rewind to anywhere."""

    class ring(Growing):
        profile = "ring"

        def __init__(self, config: Config) -> None:
            if not refusals.valid(config):
                raise Refused("RING-14", "no such ring")
            super().__init__(config)
            self.window = config.window or 1

        def append(self, keys: Array, values: Array) -> None:
            if keys.shape[2] and not refusals.fits(self.config, Pair(keys, values)):
                raise Refused("RING-13", "rows of another geometry")
            super().append(keys, values)

        def read(self, what: Readable) -> Pair | None:
            pair, first = super().read(what), max(0, self.offset - self.window + 1)
            return pair if what != "view" or pair is None else Pair(*(a[:, :, first:] for a in pair))

        def mask(self, logical: Logical) -> Array | None:
            return super().mask((*logical, Window(self.window)))

        def rewind(self, to: int) -> None:
            if not 0 <= to <= self.offset:
                raise Refused("RING-9", "beyond the ends")
            super().rewind(to)

        def lengths(self) -> Lengths:
            return Lengths(self.offset)

        def snapshot(self, start: int) -> Snapshot | None:
            return super().snapshot(start if start >= self.offset else 0)

        def merge(self, parent: Snapshot | None, child: Snapshot | None) -> Snapshot | None:
            pieces = snapshot.pieces("merge", (parent, child), self.profile, self.config)
            for other in pieces[:-1]:
                other.consume()
            return pieces[-1].handed_on() if pieces else None

        def split(self, saved: Snapshot | None, at: int) -> tuple[Snapshot | None, Snapshot | None]:
            return super().split(saved, 0)

    profiles: ClassVar[dict[str, Any]] = {
        "ring": {"level": "visible", "rewind": -1},
        "mask": "visible",
        "snapshot": "visible",
    }


class SeesTooMuch(Whole):
    """Keeps the whole history, and masks a window that is one row too wide."""

    profiles: ClassVar[dict[str, Any]] = {"ring": {"level": "visible", "rewind": -1}, "mask": "visible"}

    class ring(Whole.ring):
        def mask(self, logical: Logical) -> Array | None:
            return Growing.mask(self, (*logical, Window(self.window + 1)))


class ForgetsToRewind(Whole):
    """Keeps the whole history; after a rewind the dead rows stay, and new ones come behind them."""

    profiles: ClassVar[dict[str, Any]] = {"ring": {"level": "visible", "rewind": -1}, "mask": "visible"}

    class ring(Whole.ring):
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

    profiles: ClassVar[dict[str, Any]] = {"growing": "storage", "ring": "storage", "mask": "storage"}


class OnlyF32(Fake):
    """No lie: knows one dtype, and says so."""

    more: ClassVar[dict[str, Any]] = {"dtypes": ["f32"]}
    profiles: ClassVar[dict[str, Any]] = dict.fromkeys(("growing", "ring", "mask", "snapshot"), "storage")

    def open(self, profile: str, config: Config) -> Cache:
        if config.dtype in ("f16", "bf16"):
            raise Unsupported("f32 alone")
        return super().open(profile, config)


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
    """Declares the profile snapshot; its caches have no such method."""

    profiles: ClassVar[dict[str, Any]] = {"growing": "storage", "snapshot": "storage"}

    class growing(Growing):
        snapshot = None  # type: ignore[assignment]


class DoesSnapshotsUndeclared(Fake):
    """Takes snapshots, and does not declare them."""

    def open(self, profile: str, config: Config) -> Cache:
        return Reference.open(self, profile, config)


class RefusesButChanges(Fake):
    """Does not declare the profile mask, refuses it, and forgets a row as it does."""

    class growing(Growing):
        def __init__(self, config: Config) -> None:
            super().__init__(config)
            self.mask = self.refuse  # type: ignore[method-assign]

        def refuse(self, logical: Logical) -> Array | None:
            self.offset -= 1
            raise Unsupported("no masks")

    def open(self, profile: str, config: Config) -> Cache:
        cache: Any = Reference.open(self, profile, config)
        cache.snapshot = None
        return cache  # type: ignore[no-any-return]


class KnownDeviation(AcceptsAnyRewind):
    """Takes a rewind beyond its ends, and says that this is known."""

    more: ClassVar[dict[str, Any]] = {"known": {"GROW-7": "rewinds are clipped"}}


class KnownButRight(Fake):
    """Declares a deviation that it does not have."""

    more: ClassVar[dict[str, Any]] = {"known": {"GROW-7": "rewinds were clipped once"}}


class KnownOfNoClause(Fake):
    """Declares a deviation from a clause that there is not."""

    more: ClassVar[dict[str, Any]] = {"known": {"GROW-700": "whatever that may be"}}
