"""Adapters that raise, mostly what nobody expects."""

from __future__ import annotations

from typing import Any, ClassVar

from kvref.caches.growing import Growing
from kvspec.contract import Lengths
from kvspec.errors import Refused
from kvspec.geometry import Array
from kvworkshop.fakes import Fake


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
