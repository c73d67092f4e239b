"""Adapters that end their process, stop it, or change it behind the harness."""

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

import numpy as np

from kvref.caches.growing import Growing
from kvspec.contract import Cache, Pair, Readable
from kvspec.geometry import Array, Config
from kvworkshop.fakes import Fake

FOREVER = 600.0


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
