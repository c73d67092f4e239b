"""What a model of a known deviation does not say: a cache that took something senseless may hold anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kvspec.errors import Refused


class Unsaid(Exception):
    """Raised by a model of a known deviation. The operation ends with this result, `ok`, `refused`, `error` or
    `crash`, or one of several. From then on nothing is said of what its cache holds, until the cache is opened
    anew.

    With `unless` the engine may as well refuse as the spec does, and change nothing. With `kept` the cache is as it
    was before.
    """

    def __init__(self, result: str = "ok", unless: Refused | None = None, kept: bool = False) -> None:
        super().__init__(result)
        self.result, self.unless, self.kept = result, unless, kept


@contextmanager
def may(result: str, *clauses: str) -> Iterator[None]:
    """Say of what the spec refuses by these clauses, or by any, that it may have this result instead."""
    try:
        yield
    except Refused as e:
        if clauses and e.clause not in clauses:
            raise
        raise Unsaid(result, e) from None
    except Unsaid as e:  # another deviation of the same operation
        if e.unless is None or (clauses and e.unless.clause not in clauses):
            raise
        raise Unsaid(f"{e.result} {result}", e.unless) from None


class AnyCache:
    """A cache of which nothing is said: each of its methods raises Unsaid. `owed` names the results that these may
    have: any, and of an engine that reads out of bounds a crash besides."""

    follows = unsure = False
    """It neither takes its answers from the adapter, nor holds rows that are not known beside others that are."""

    def __init__(self, owed: str = "any") -> None:
        self.owed = owed

    def __getattr__(self, name: str) -> Any:
        """Raise Unsaid whatever is asked; AttributeError for what Python itself asks of any object."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise Unsaid(self.owed)
