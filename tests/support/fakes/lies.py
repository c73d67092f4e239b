"""Adapters that each tell one lie, named in the docstring, and a small honest cache.

Used as `support.fakes.lies:Hangs`. Processes that speak the wire by themselves are in `processes.py`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from kvadapters import scratch
from kvspec.contract import Lengths, Pair, Readable
from kvspec.errors import CannotRun, Refused, Unsupported
from kvspec.geometry import DTYPES, Array, Config, fits, valid

FOREVER = 600.0


class Growing:
    """An honest growing cache in as few lines as will do."""

    def __init__(self, config: Config) -> None:
        if not valid(config):
            raise Refused("", "sizes must be 1 or more")
        self.config = config
        self.free()

    def free(self) -> None:
        dtype = DTYPES[self.config.dtype]
        self.rows = Pair(*(np.zeros(self.config.shape(kind, 0), dtype) for kind in "kv"))
        self.written = self.asked = False

    def append(self, keys: Array, values: Array) -> None:
        new = Pair(keys, values)
        if any(a.shape[2] for a in new):
            if not fits(self.config, new):
                raise Refused("", "the rows do not fit")
            self.rows = Pair(*(np.concatenate(both, 2) for both in zip(self.rows, new, strict=True)))
            self.written = True
        self.asked = True

    def read(self, what: Readable) -> Pair | None:
        there = self.asked if what == "history" else self.written
        return Pair(*(a.copy() for a in self.rows)) if there else None

    def lengths(self) -> Lengths:
        return Lengths(self.rows.keys.shape[2])

    def can_rewind(self, to: int) -> bool:
        return 0 <= to <= len(self.rows.keys[0, 0])

    def rewind(self, to: int) -> None:
        if not self.can_rewind(to):
            raise Refused("", f"rewind to {to}: the target must lie in 0..{self.rows.keys.shape[2]}")
        self.rows = Pair(*(a[:, :, :to] for a in self.rows))
        self.written, self.asked = self.written and to > 0, False


class Honest:
    """Tells no lie."""

    cache: ClassVar[type[Growing]] = Growing

    def describe(self) -> Mapping[str, Any]:
        return {"name": type(self).__name__, "chapters": {"growing": "visible"}}

    def open(self, kind: str, config: Config) -> Growing:
        if kind != "growing":
            raise Unsupported(f"no kind {kind!r}")
        return self.cache(config)


class SharesABuffer(Honest):
    """Its caches write into one buffer: each begins with the newest row of the one before it in this process."""

    class cache(Growing):
        newest: ClassVar[dict[Config, Pair]] = {}

        def append(self, keys: Array, values: Array) -> None:
            first = not self.rows.keys.shape[2]
            super().append(keys, values)
            if not self.rows.keys.shape[2]:
                return
            if first and self.config in self.newest:
                both = zip(self.newest[self.config], self.rows, strict=True)
                self.rows = Pair(*(np.concatenate([old, new[:, :, 1:]], axis=2) for old, new in both))
            self.newest[self.config] = Pair(*(a[:, :, -1:].copy() for a in self.rows))


class DescribesNothing(Honest):
    """Says nothing of itself."""

    def describe(self) -> Mapping[str, Any]:
        return {}


class DescribesUnknownChapter(Honest):
    """Claims a chapter that there is not."""

    def describe(self) -> Mapping[str, Any]:
        return {"name": "spiral", "chapters": {"growing": "visible", "spiral": "storage"}}


class DescribesWithArrays(Honest):
    """Puts what is not JSON into its details."""

    def describe(self) -> Mapping[str, Any]:
        return {**super().describe(), "details": {"cores": np.zeros(3)}}


class HangsInDescribe(Honest):
    """Never says what it is."""

    def describe(self) -> Mapping[str, Any]:
        time.sleep(FOREVER)
        return super().describe()


class SlowToOpen(Honest):
    """No lie: it takes half a second to open a cache."""

    def open(self, kind: str, config: Config) -> Growing:
        time.sleep(0.5)
        return super().open(kind, config)


class SlowToAppend(Honest):
    """No lie: it takes a while to append."""

    class cache(Growing):
        def append(self, keys: Array, values: Array) -> None:
            time.sleep(0.4)
            super().append(keys, values)


class ComputesToAppend(Honest):
    """No lie: it computes for a while to append."""

    class cache(Growing):
        def append(self, keys: Array, values: Array) -> None:
            until = time.thread_time() + 0.3
            while time.thread_time() < until:
                pass
            super().append(keys, values)


class NeedsADevice(Honest):
    """No lie: it cannot run on this machine, and says so."""

    def __init__(self) -> None:
        raise CannotRun("there is no such device here; install one")


class PrintsToStandardOutput(Honest):
    """Writes into the protocol, in every way there is."""

    class cache(Growing):
        def append(self, keys: Array, values: Array) -> None:
            print("printed")
            os.write(1, b"written\n")
            assert sys.__stdout__ is not None
            sys.__stdout__.write("underlined\n")
            subprocess.run(["echo", "echoed"], check=True)
            super().append(keys, values)


class PrintsALot(Honest):
    """No lie: it prints more than any pipe holds before it answers."""

    class cache(Growing):
        def append(self, keys: Array, values: Array) -> None:
            os.write(2, b"noise\n" * (1 << 20))
            super().append(keys, values)


class WrongShape(Honest):
    """Returns rows with the heads and the rows exchanged."""

    class cache(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            return pair and Pair(*(a.swapaxes(1, 2) for a in pair))


class WrongDtype(Honest):
    """Returns rows in double precision."""

    class cache(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            return pair and Pair(*(a.astype(np.float64) for a in pair))


class SendsNaN(Honest):
    """Returns NaN for every row."""

    class cache(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            return pair and Pair(*(np.full_like(a, np.nan) for a in pair))


class CountsInFloats(Honest):
    """Its offset is no whole number."""

    class cache(Growing):
        def lengths(self) -> Lengths:
            return Lengths(super().lengths().offset + 0.5)  # type: ignore[arg-type]


class CountsInNumpy(Honest):
    """No lie: its offset is a whole number of numpy's."""

    class cache(Growing):
        def lengths(self) -> Lengths:
            return Lengths(np.int64(super().lengths().offset))  # type: ignore[arg-type]


class DiesBySignal(Honest):
    """Crashes in native code."""

    class cache(Growing):
        def append(self, keys: Array, values: Array) -> None:
            print("about to crash")
            os.kill(os.getpid(), signal.SIGSEGV)


class ExitsQuietly(Honest):
    """Leaves with status 0 and no answer."""

    class cache(Growing):
        def append(self, keys: Array, values: Array) -> None:
            sys.exit(0)


class Hangs(Honest):
    """Never comes back from an append."""

    class cache(Growing):
        def append(self, keys: Array, values: Array) -> None:
            time.sleep(FOREVER)


class EatsMemory(Honest):
    """Takes 64 MiB more every hundredth of a second."""

    class cache(Growing):
        def append(self, keys: Array, values: Array) -> None:
            eaten = []
            while True:
                eaten.append(np.ones(8 << 20))
                time.sleep(0.01)


class EatsMemoryAndAnswers(Honest):
    """Keeps 8 MiB at every append, and answers at once."""

    class cache(Growing):
        eaten: ClassVar[list[Array]] = []

        def append(self, keys: Array, values: Array) -> None:
            self.eaten.append(np.ones(1 << 20))


class LeaksAndIsRight(Honest):
    """No lie: appends as it should, and keeps 8 MiB more each time."""

    class cache(Growing):
        kept: ClassVar[list[Array]] = []

        def append(self, keys: Array, values: Array) -> None:
            self.kept.append(np.ones(1 << 20))
            super().append(keys, values)


class LoadsMuch(Honest):
    """No lie: holds 100 MiB from its description on, as an engine holds its libraries."""

    def __init__(self) -> None:
        self.loaded = np.ones(100 << 17)


class RaisesKeyError(Honest):
    """Raises what is neither Refused nor Unsupported."""

    class cache(Growing):
        def append(self, keys: Array, values: Array) -> None:
            raise KeyError("slot 7")


class ReadsItsStandardInput(Honest):
    """Would eat the next question."""

    class cache(Growing):
        def append(self, keys: Array, values: Array) -> None:
            super().append(keys, values)
            assert sys.stdin.read() == ""
            assert os.read(0, 100) == b""


class StartsAChild(Honest):
    """Leaves a process behind, in its own group or in a session of its own (`apart`)."""

    apart = False

    def describe(self) -> Mapping[str, Any]:
        self.child = subprocess.Popen(["sleep", "60"], start_new_session=self.apart)
        return {**super().describe(), "details": {"child": self.child.pid}}


class LeavesAFolder(Honest):
    """Has a temporary folder when it is killed."""

    def describe(self) -> Mapping[str, Any]:
        return {**super().describe(), "details": {"folder": scratch.folder()}}


class StartsAChildApart(StartsAChild):
    """Leaves a process behind in a session of its own."""

    apart = True
