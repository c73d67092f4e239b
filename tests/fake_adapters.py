"""Fake adapters on top of the reference: each tells one lie, or differs honestly, as its docstring says.

Used as `fake_adapters:Whole`. The fakes of the worker, without the reference, are in `fakes.py`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from kvadapters.reference import Reference
from kvadapters.serve import Server
from kvref import snapshot
from kvref.growing import Growing
from kvref.ring import Ring
from kvref.snapshot import Snapshot
from kvspec import refusals, wire
from kvspec.contract import Cache, Lengths, Pair, Readable
from kvspec.errors import Refused, Unsupported
from kvspec.geometry import CACHES, Array, Config
from kvspec.masks import Logical, Window

FOREVER = 60.0


OF_THE_ADAPTER = {"draft": ("speculate",), "mem": ("fit",), "residency": ("meter", "place")}
OF_A_CACHE = {"mask": ("mask",), "snapshot": ("snapshot", "restore", "merge", "split"), "mem": ("plan", "held")}


class Fake(Reference):
    """The reference's growing cache under another name; fakes have caches of their own, and say `more`."""

    growing: ClassVar[Any] = Growing
    ring: ClassVar[Any] = Ring
    profiles: ClassVar[dict[str, Any]] = {"growing": {"level": "storage", "grows": "step"}}
    more: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        for profile, methods in OF_THE_ADAPTER.items():
            for method in () if profile in self.profiles else methods:
                setattr(self, method, None)  # what is not declared is not offered

    def describe(self) -> dict[str, Any]:
        return {"name": type(self).__name__, "profiles": self.profiles, **self.more}

    @property
    def caches(self) -> dict[str, Any]:  # type: ignore[override]
        return {p: getattr(self, p) for p in CACHES if p in self.profiles}

    def open(self, profile: str, config: Config) -> Cache:
        cache: Any = super().open(profile, config)
        for name, methods in OF_A_CACHE.items():
            for method in () if name in self.profiles else methods:
                setattr(cache, method, None)
        return cache  # type: ignore[no-any-return]


def one_row(pair: Pair | None, value: float) -> Pair | None:
    """The pair with its last key row overwritten."""
    if pair is not None and pair.keys.shape[2]:
        pair.keys[:, :, -1] = value
    return pair


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


class DiesOnView(Fake):
    """Crashes in native code when it is asked for the view."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            if what == "view":
                os.kill(os.getpid(), signal.SIGSEGV)
            return super().read(what)


class HangsOnRewind(Fake):
    """Never comes back from a rewind."""

    class growing(Growing):
        def rewind(self, to: int) -> None:
            time.sleep(FOREVER)


class EatsMemory(Fake):
    """Takes 64 MiB more every hundredth of a second when it is freed."""

    class growing(Growing):
        def free(self) -> None:
            eaten = []
            while True:
                eaten.append(np.ones(8 << 20))
                time.sleep(0.01)


class SpeaksGibberish(Fake):
    """Writes into its own answers when it is freed."""

    class growing(Growing):
        def free(self) -> None:
            speak_gibberish()
            super().free()


def speak_gibberish() -> None:
    """Write to every pipe there is but the three that all processes have."""
    for pipe in range(3, 20):
        with contextlib.suppress(OSError):
            os.write(pipe, b"Hello! I am a language model.\n")


class EndsInEveryWay(Fake):
    """Dies on a view, hangs on a rewind, eats memory when freed, and speaks gibberish on an append of no rows."""

    class growing(DiesOnView.growing, HangsOnRewind.growing, EatsMemory.growing):
        def append(self, keys: Array, values: Array) -> None:
            if keys.shape[2] == 0:
                speak_gibberish()
            super().append(keys, values)


class WrongShape(Fake):
    """Returns the history without its last head."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            return pair if what != "history" or pair is None else Pair(*(a[:, :-1] for a in pair))


class WrongDtype(Fake):
    """Returns the history in single precision, whatever it was given."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            return pair if what != "history" or pair is None else Pair(*(a.astype(np.float32) for a in pair))


class SendsNaN(Fake):
    """Returns NaN for the newest row."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            return one_row(super().read(what), np.nan)


class PrintsALot(Fake):
    """No lie: it prints, to standard output as well, at first more than any pipe holds."""

    class growing(Growing):
        lines: ClassVar[list[int]] = [400_000]

        def read(self, what: Readable) -> Pair | None:
            print("noise " * self.lines[0])
            os.write(1, b"noise\n" * self.lines[0])
            assert sys.__stdout__ is not None
            sys.__stdout__.write("noise\n")
            self.lines[0] = 1
            return super().read(what)


class Nondeterministic(Fake):
    """Wrong at every 37th read."""

    class growing(Growing):
        reads: ClassVar[list[int]] = [0]

        def read(self, what: Readable) -> Pair | None:
            self.reads[0] += 1
            pair = super().read(what)
            return one_row(pair, 3.0) if self.reads[0] % 37 == 0 else pair


class RightTheFirstTimeOnly(Fake):
    """Its first cache is right, and all that come after lose the last row."""

    opened: ClassVar[list[int]] = [0]

    def open(self, profile: str, config: Config) -> Cache:
        self.opened[0] += 1
        cache: Any = super().open(profile, config)
        if self.opened[0] > 1:
            read = cache.read
            cache.read = lambda what: one_row(read(what), 1.0)
        return cache  # type: ignore[no-any-return]


class KeepsCallersArrays(Fake):
    """Keeps the arrays it was handed where they are all it holds, instead of copies."""

    class growing(Growing):
        def _feed(self, new: Pair) -> None:
            first = self.offset == 0
            super()._feed(new)
            if first:
                self.rows.keys, self.rows.values = new

    profiles: ClassVar[dict[str, Any]] = {"growing": "storage"}


class ReturnsLiveViews(Fake):
    """Hands out its own storage."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            if what != "history" and not self.written:
                return None
            return Pair(self.rows.keys[:, :, : self.offset], self.rows.values[:, :, : self.offset])


class SharedBetweenCaches(Fake):
    """All caches of a geometry write into the same buffer."""

    class growing(Growing):
        buffers: ClassVar[dict[Config, Pair]] = {}

        def _feed(self, new: Pair) -> None:
            first, config = self.offset, self.config.changed(step=1)
            super()._feed(new)
            whole = Pair(*(np.zeros(config.shape(kind, 600), a.dtype) for kind, a in zip("kv", new, strict=True)))
            for buffer, rows in zip(self.buffers.setdefault(config, whole), new, strict=True):
                buffer[:, :, first : self.offset] = rows

        def read(self, what: Readable) -> Pair | None:
            pair, shared = super().read(what), self.buffers.get(self.config.changed(step=1))
            return pair and Pair(*(a[:, :, : self.offset].copy() for a in shared or pair))


class RefusesEverything(Fake):
    """Refuses to append anything at all."""

    class growing(Growing):
        def append(self, keys: Array, values: Array) -> None:
            raise Refused("", "not today")


class ReturnsConstants(Fake):
    """Returns rows of the right shape that are all ones."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            return pair and Pair(*(np.ones_like(a) for a in pair))


class DoesNothing(Fake):
    """Takes everything, and holds nothing."""

    class growing(Growing):
        def append(self, keys: Array, values: Array) -> None:
            pass


class NoopRewind(Fake):
    """Takes a rewind, and stays where it is."""

    class growing(Growing):
        def rewind(self, to: int) -> None:
            offset = self.offset
            super().rewind(to)
            self.offset = offset


class HalfRefusal(Fake):
    """Refuses a rewind beyond its end, after it has set the offset."""

    class growing(Growing):
        def rewind(self, to: int) -> None:
            wrong, offset = not 0 <= to <= self.offset, self.offset
            if wrong:
                self.offset = max(0, offset - 1)
                raise Refused("GROW-7", "beyond the end")
            super().rewind(to)


class AcceptsAnyRewind(Fake):
    """Takes a rewind beyond its ends as one to the end nearer to it."""

    class growing(Growing):
        def rewind(self, to: int) -> None:
            super().rewind(min(max(to, 0), self.offset))


class KnownDeviation(AcceptsAnyRewind):
    """Takes a rewind beyond its ends, and says that this is known."""

    more: ClassVar[dict[str, Any]] = {"known": {"GROW-7": "rewinds are clipped"}}


class KnownButRight(Fake):
    """Declares a deviation that it does not have."""

    more: ClassVar[dict[str, Any]] = {"known": {"GROW-7": "rewinds were clipped once"}}


class KnownOfNoClause(Fake):
    """Declares a deviation from a clause that there is not."""

    more: ClassVar[dict[str, Any]] = {"known": {"GROW-700": "whatever that may be"}}


class WrongRefusalClause(Fake):
    """Refuses a rewind beyond its end, and names the clause about geometry."""

    class growing(Growing):
        def rewind(self, to: int) -> None:
            if not 0 <= to <= self.offset:
                raise Refused("GROW-10", "beyond the end")
            super().rewind(to)


class CanRewindRewinds(Fake):
    """Rewinds when it is asked whether it could."""

    class growing(Growing):
        def can_rewind(self, to: int) -> bool:
            can = super().can_rewind(to)
            if can:
                self.offset = to
            return can


class RaisesKeyError(Fake):
    """Raises what is neither Refused nor Unsupported when it is freed."""

    class growing(Growing):
        def free(self) -> None:
            raise KeyError("slot 7")


class CannotOpen(Fake):
    """Declares a growing cache, and opens none."""

    def open(self, profile: str, config: Config) -> Cache:
        raise Unsupported("not yet")


def out_of_order(answer: bytes) -> bytes:
    """Answers the question after the one that was asked."""
    head, newline, tensors = answer.partition(b"\n")
    said = json.loads(head)
    return json.dumps({**said, "id": said["id"] + 1}).encode() + newline + tensors


def a_byte_too_many(answer: bytes) -> bytes:
    """Sends one byte more than it announced."""
    return answer + b"x"


def a_byte_too_few(answer: bytes) -> bytes:
    """Sends one byte less than it announced."""
    return answer[:-1]


def an_unknown_tensor(answer: bytes) -> bytes:
    """Sends a tensor under a name that the protocol does not know."""
    return answer.replace(b'"state.k"', b'"stake.k"')


def a_result_of_its_own(answer: bytes) -> bytes:
    """Calls its result by another name."""
    return answer.replace(b'"result": "ok"', b'"result": "fine"')


def lie(change: Callable[[bytes], bytes]) -> None:
    """An engine on the wire that is the reference, but for what it answers to appends."""
    server, decoder = Server("fake_adapters:Fake"), wire.Decoder()
    while data := os.read(0, 1 << 20):
        for head, tensors in decoder.feed(data):
            answer = server.answer(dict(head), tensors)
            os.write(1, change(answer) if head["op"] == "append" else answer)


if __name__ == "__main__":
    lie(globals()[sys.argv[1]])
