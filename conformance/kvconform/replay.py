"""What a trace needs when it is replayed: rows, masks and configs; and the oracle at level `storage`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from kvadapters.reference import Reference
from kvref.cite import cite, cited
from kvspec import masks
from kvspec.contract import Pair
from kvspec.geometry import Config
from kvspec.operations import Operation, argument, cache_of
from kvspec.rows import Book
from kvspec.session import Session, Step
from kvspec.trace import Trace, overridden


@dataclass(frozen=True)
class Given:
    """What goes with one operation: rows with append, a logical mask with mask, profile and config with open."""

    rows: Pair | None = None
    logical: masks.Logical | None = None
    opening: tuple[str, Config] | None = None


class Performs(Protocol):
    """A session, here or in a worker."""

    def begin(self, profile: str, config: Config) -> Step:
        """Open cache A, and forget all that was."""

    def do(
        self,
        op: Operation,
        rows: Pair | None = None,
        logical: masks.Logical | None = None,
        opening: tuple[str, Config] | None = None,
    ) -> Step:
        """Perform one operation."""


class Supplies:
    """Makes what the operations of one trace need; rows get their serials here."""

    def __init__(self, trace: Trace) -> None:
        self.book = Book()
        self.opened = {"A": (trace.profile, trace.config)}
        self._trace = trace

    def give(self, op: Operation) -> Given:
        """What goes with this operation."""
        if op["op"] == "append":
            _, config = self.of(op)
            return Given(rows=Pair(*self.book.rows(op, config)))
        if op["op"] == "mask":
            return Given(logical=masks.from_json(op["parts"]))
        if op["op"] == "open":
            return Given(opening=self.opening(op))
        return Given()

    def of(self, op: Operation) -> tuple[str, Config]:
        """Profile and config of the cache an operation is for; those of A where that was never opened."""
        return self.opened.get(cache_of(op), self.opened["A"])

    def opening(self, op: Operation) -> tuple[str, Config]:
        """Profile and config of the cache that an open operation names: the trace's, where it does not say."""
        profile = argument(op, "profile") or self._trace.profile
        config = overridden(self._trace.config, op, "step", "window")
        return profile, config.changed(window=None) if profile == "growing" else config

    def done(self, op: Operation, result: str) -> None:
        """The oracle's verdict is known: rows that were taken use up their serials, caches opened are there."""
        if op["op"] == "open" and result == "ok":
            self.opened[cache_of(op)] = self.opening(op)
        if op["op"] == "append" and result == "ok":
            self.book.took(op["n"])


def _copied(logical: masks.Logical | None) -> masks.Logical | None:
    if logical is None:
        return None
    return tuple(masks.Explicit(p.array.copy()) if isinstance(p, masks.Explicit) else p for p in logical)


OWNERSHIP = {"growing": "GROW-13", "ring": "RING-16"}
BITS = {"growing": "GROW-12", "ring": "RING-15"}


def cite_operation(op: Operation, profile: str) -> None:
    """Clauses that an operation exercises whatever the cache does: on the caller's arrays, on bits, on repeats."""
    if op["op"] == "scribble":
        cite(OWNERSHIP[profile])
    if op["op"] == "mask":
        cite("MASK-15")
    if op["op"] == "append" and argument(op, "fill") == "bits":
        cite(BITS[profile])


class Cited:
    """A session on the reference whose steps say which clauses they exercised."""

    def __init__(self, adapter: Any = None, observe: tuple[str, ...] = ("state", "history", "mask")) -> None:
        self._session = Session((adapter or Reference()).open, observe)
        self._profiles: dict[str, str] = {}

    @property
    def session(self) -> Session:
        """The session underneath, for those who look into the reference's state."""
        return self._session

    def begin(self, profile: str, config: Config) -> Step:
        """Open cache A."""
        return self.do({"op": "open"}, opening=(profile, config))

    def do(
        self,
        op: Operation,
        rows: Pair | None = None,
        logical: masks.Logical | None = None,
        opening: tuple[str, Config] | None = None,
    ) -> Step:
        """Perform one operation and note the clauses."""
        cited()
        # its own copies: the reference's session scribbles on what it was handed, as any caller may
        own = None if rows is None else Pair(rows.keys.copy(), rows.values.copy())
        step = self._session.do(op, own, _copied(logical), opening)
        if step.result == "ok" and opening is not None:
            self._profiles[cache_of(op)] = opening[0]
        if step.result == "ok":
            cite_operation(op, self._profiles[cache_of(op)])
        # a refusal exercises its own clause and no other: what was cited on the way to it did not happen
        step.cites = (step.clause,) if step.result == "refused" else cited()
        return step
