"""Hostile adapters over the reference's growing cache: each does what its docstring says, mostly on an append.

Used as `hostile.adapters:Name`.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import threading
import time
from typing import Any, ClassVar
from unittest.mock import MagicMock

import numpy as np

from kvconform.mutants.fakes import Fake
from kvref.growing import Growing
from kvspec.contract import Cache, Lengths, Pair, Readable
from kvspec.errors import Refused
from kvspec.geometry import Array, Config

FOREVER = 600.0


class Agreeable(np.ndarray):
    """An array that says it equals whatever it is compared with."""

    def __eq__(self, other: object) -> Any:
        return True

    def tobytes(self, order: Any = "C") -> bytes:
        raise AssertionError("nobody asks an array for its own opinion")


class AgreesWithAll(Fake):
    """Returns zeros in an array that says it equals everything."""

    class growing(Growing):
        def read(self, what: Readable) -> Any:
            pair = super().read(what)
            return pair and Pair(*(np.zeros_like(a).view(Agreeable) for a in pair))


class Number(int):
    """A number that says it equals every other."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


class OffsetAgreesWithAll(Fake):
    """Its offset is 99, and says it equals everything."""

    class growing(Growing):
        def lengths(self) -> Lengths:
            return super().lengths()._replace(offset=Number(99))


class OffsetIsAnObject(Fake):
    """Its offset is an object that can be an index."""

    class growing(Growing):
        def lengths(self) -> Any:
            return super().lengths()._replace(offset=type("Index", (), {"__index__": lambda self: 1})())


class Strided(Fake):
    """No lie: it returns arrays that lie in memory in another order, backwards."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            return pair and Pair(*(np.array(a[..., ::-1].T).T[..., ::-1] for a in pair))


class ReadOnly(Fake):
    """No lie: it returns arrays that cannot be written."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            for a in pair or ():
                a.setflags(write=False)
            return pair


class Masked(Fake):
    """Returns masked arrays, which hide that the newest row is wrong."""

    class growing(Growing):
        def read(self, what: Readable) -> Any:
            pair = super().read(what)
            return pair and Pair(*(np.ma.masked_array(a * 0, mask=True) for a in pair))


class BigEndian(Fake):
    """Returns rows of the other byte order."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            return pair and Pair(*(a.astype(a.dtype.newbyteorder(">")) for a in pair))


class Objects(Fake):
    """Returns arrays of Python's numbers."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            return pair and Pair(*(a.astype(object) for a in pair))


class Lists(Fake):
    """Returns lists of lists."""

    class growing(Growing):
        def read(self, what: Readable) -> Any:
            pair = super().read(what)
            return pair and [a.tolist() for a in pair]


class Generates(Fake):
    """Returns a generator of keys, and of values without end."""

    class growing(Growing):
        def read(self, what: Readable) -> Any:
            pair = super().read(what)
            return pair and (a for a in (pair.keys, *[pair.values] * 1000))


class KeysAlone(Fake):
    """Returns keys and no values."""

    class growing(Growing):
        def read(self, what: Readable) -> Any:
            pair = super().read(what)
            return pair and (pair.keys, None)


class Swapped(Fake):
    """Returns values in the place of keys."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            return pair and Pair(pair.values, pair.keys)


class Scalars(Fake):
    """Returns arrays without axes."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            return Pair(np.zeros((), np.float16), np.zeros((), np.float16))


class Live(Fake):
    """Returns its own storage, on which the caller scribbles."""

    class growing(Growing):
        def __init__(self, config: Config) -> None:
            super().__init__(config)
            self.lent: dict[str, Pair | None] = {}

        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            old = self.lent.get(what)
            same = pair and old and pair.keys.shape == old.keys.shape
            self.lent[what] = old if same else pair
            return self.lent[what]


class Keeps(Fake):
    """Keeps the caller's first arrays, on which the caller scribbles."""

    class growing(Growing):
        first: Pair | None = None

        def append(self, keys: Array, values: Array) -> None:
            super().append(keys, values)
            self.first = self.first or Pair(keys, values)

        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            for a, kept in zip(pair or (), self.first or (), strict=False):
                a[:, :, : kept.shape[2]] = kept
            return pair


class ChangesWhenRead(Fake):
    """Forgets a row when its view is read."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            if what == "view":
                self.offset = max(0, self.offset - 1)
            return pair


class TiresAtRow100(Fake):
    """Writes no row behind the hundredth."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            for a in pair or ():
                a[:, :, 100:] = 0
            return pair


class WrongInHead1(Fake):
    """Copies head 0 into head 1."""

    class growing(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            for a in pair or ():
                a[:, 1:2] = a[:, :1]
            return pair


class WrongFromTheSecondCacheOn(Fake):
    """Is right in the first cache that it opens; in later ones it loses a row."""

    opened: ClassVar[int] = 0

    def open(self, kind: str, config: Config) -> Cache:
        type(self).opened += 1
        cache: Any = super().open(kind, config)
        if self.opened > 1:
            cache.read = lambda what: None
        return cache  # type: ignore[no-any-return]


class ZeroRowsAreARow(Fake):
    """Counts an append of no rows as one."""

    class growing(Growing):
        def lengths(self) -> Lengths:
            found = super().lengths()
            return found._replace(offset=found.offset + self.none)

        none = 0

        def append(self, keys: Array, values: Array) -> None:
            super().append(keys, values)
            self.none += keys.shape[2] == 0


class RaisesInLengths(Fake):
    """Cannot say how long it is."""

    class growing(Growing):
        def lengths(self) -> Lengths:
            raise OSError("device lost")


class LengthsOfOne(Fake):
    """Says its lengths as a single number."""

    class growing(Growing):
        def lengths(self) -> Any:
            return 1


class Speechless(Exception):
    """Cannot be told."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Raises(Fake):
    """Raises `error` from an append."""

    error: ClassVar[Any] = Speechless

    class growing(Growing):
        def append(self, keys: Array, values: Array) -> None:
            raise Raises.current.error()

    current: ClassVar[Any] = None

    def __init__(self) -> None:
        super().__init__()
        Raises.current = type(self)


class RaisesTheUnspeakable(Raises):
    """Raises what has no words."""


class RaisesAtLength(Raises):
    """Raises a message of ten million letters."""

    error = staticmethod(lambda: ValueError("x" * 10_000_000))


class RaisesCommands(Raises):
    """Raises a message that a terminal would obey."""

    error = staticmethod(lambda: ValueError("\x1b[2J\x1b]0;owned\x07\u202e\r\nPASS GROW-1"))


class RaisesHalfLetters(Raises):
    """Raises a message that no file can hold."""

    error = staticmethod(lambda: ValueError("\ud800"))


class StopsIteration(Raises):
    """Raises what ends loops."""

    error = StopIteration


class LacksMemory(Raises):
    """Says that memory is short."""

    error = MemoryError


class RefusesWithoutWords(Raises):
    """Refuses an append, under no clause, for no reason."""

    error = staticmethod(lambda: Refused("", ""))


class RefusesUnderANumber(Raises):
    """Refuses an append under a clause that is a number."""

    error = staticmethod(lambda: Refused(7, "no"))  # type: ignore[arg-type]


class RefusesUnderAList(Raises):
    """Refuses an append under a list of clauses."""

    error = staticmethod(lambda: Refused(["GROW-1"], "no"))  # type: ignore[arg-type]


class Recurses(Fake):
    """Calls itself without end."""

    class growing(Growing):
        def append(self, keys: Array, values: Array) -> None:
            self.append(keys, values)


class MaybeRewinds(Fake):
    """Says "no" when asked whether it could rewind, which is true."""

    class growing(Growing):
        def can_rewind(self, to: int) -> Any:
            return "no"


class Mocks(Fake):
    """Opens a mock, which answers whatever it is asked."""

    def open(self, kind: str, config: Config) -> Any:
        return MagicMock()


class DiesAtOpen(Fake):
    """Crashes in native code when a cache is opened."""

    def open(self, kind: str, config: Config) -> Cache:
        os.kill(os.getpid(), signal.SIGSEGV)
        return super().open(kind, config)


class HangsAtOpen(Fake):
    """Opens no cache in all eternity."""

    def open(self, kind: str, config: Config) -> Cache:
        time.sleep(FOREVER)
        return super().open(kind, config)


class EatsAtOpen(Fake):
    """Takes memory without end when a cache is opened."""

    def open(self, kind: str, config: Config) -> Cache:
        eaten = []
        while True:
            eaten.append(np.ones(8 << 20))
            time.sleep(0.01)


class RaisesAtOpen(Fake):
    """Raises from the opening of a cache."""

    def open(self, kind: str, config: Config) -> Cache:
        raise ZeroDivisionError


class Deadly(Fake):
    """Does `die` on an append."""

    class growing(Growing):
        def append(self, keys: Array, values: Array) -> None:
            Deadly.current.die()
            super().append(keys, values)

    current: ClassVar[Any] = None

    def __init__(self) -> None:
        super().__init__()
        Deadly.current = self

    def die(self) -> None:
        """Whatever a class below does."""


def wire() -> list[int]:
    """The descriptors of the wire, and others above the three that all processes have."""
    return [int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2]


class ClosesEverything(Deadly):
    """Closes every descriptor there is."""

    def die(self) -> None:
        os.closerange(0, 1 << 10)


class Forks(Deadly):
    """Goes on in two processes; both answer."""

    def die(self) -> None:
        os.fork()


class AnswersForAnother(Deadly):
    """Answers a question that nobody asked, before its worker answers its own."""

    def die(self) -> None:
        for number in wire():
            try:
                os.write(number, json.dumps({"id": 999, "result": "ok"}).encode() + b"\n")
            except OSError:
                continue


class StopsItself(Deadly):
    """Stops as Ctrl-Z would stop it."""

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)


class Aborts(Deadly):
    """Aborts, as a failed assertion in C does."""

    def die(self) -> None:
        os.abort()


class OverflowsTheStack(Deadly):
    """Recurses beyond the stack."""

    def die(self) -> None:
        sys.setrecursionlimit(10**9)
        threading.stack_size(1 << 16)
        thread = threading.Thread(target=json.loads, args=("[" * 10**6,))
        thread.start()
        thread.join()
        ctypes.string_at(0)


class RunsOutOfTime(Deadly):
    """Has used all the processor time that it may."""

    def die(self) -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (0, 1))
        while True:
            pass


class RaisesTheInterrupt(Deadly):
    """Raises what Ctrl-C raises."""

    def die(self) -> None:
        raise KeyboardInterrupt


class RaisesTheExit(Deadly):
    """Raises what ends a program, with a text."""

    def die(self) -> None:
        raise SystemExit("the licence has expired")


class LeavesAThread(Deadly):
    """No lie: it leaves a thread behind that never ends."""

    def die(self) -> None:
        threading.Thread(target=time.sleep, args=(FOREVER,)).start()


class PatchesNumpy(Deadly):
    """Has numpy say that all arrays are equal; its rows are wrong."""

    def die(self) -> None:
        np.array_equal = lambda *_: True  # type: ignore[assignment]
        np.allclose = lambda *_, **__: True

    class growing(Deadly.growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            return pair and Pair(*(a * 0 for a in pair))


class GoesElsewhere(Deadly):
    """No lie: it changes its folder, its umask and its environment, and ignores every signal it can."""

    def die(self) -> None:
        os.chdir("/")
        os.umask(0o777)
        os.environ.clear()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD):
            signal.signal(number, signal.SIG_IGN)


class Hooks(Deadly):
    """Forbids the worker to open, to import and to write anything more."""

    def die(self) -> None:
        def forbid(event: str, arguments: object) -> None:
            if event in ("open", "import", "os.write"):
                raise PermissionError(event)

        sys.addaudithook(forbid)
