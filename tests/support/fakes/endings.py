"""Fake adapters that do not answer, or not only: they die, hang, eat memory, print, or open nothing.

Used as `support.fakes.endings:DiesOnView`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from typing import ClassVar

import numpy as np

from kvref.caches.growing import Growing
from kvspec.contract import Cache, Pair, Readable
from kvspec.errors import Unsupported
from kvspec.geometry import Array, Config
from kvworkshop.fakes import Fake

FOREVER = 600.0


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


class CannotOpen(Fake):
    """Declares a growing cache, and opens none."""

    def open(self, kind: str, config: Config) -> Cache:
        raise Unsupported("not yet")
