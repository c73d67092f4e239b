"""Bounds on the cost of an operation: their terms, and the facts about an operation that they use.

A bound is stated for each of the counts of `contract.METERED`; a count that a cost does not name must be 0. Bytes
follow from the operation, the config, and the cache's own lengths before and after. So every cache is held to its
own capacity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from kvspec.chapters.record import METERED
from kvspec.geometry import Config
from kvspec.operations.table import Operation
from kvspec.session.step import Step

PADDING = 16
"""Bytes that may travel beside an array, so that what follows it begins at a multiple of a word."""

ENTRY = 8
"""Bytes of a length or an index that a device keeps."""

BUFFER = 2
"""Allocations for keys and values, who may share one."""

ENDLESS = 1 << 63
"""More than a meter counts."""

NOTHING_COUNTED = dict.fromkeys(METERED, 0)
"""What a meter says where nothing was done: no bound is below."""

Counts = dict[str, int]


class Bound(NamedTuple):
    """The limits that a clause sets on some counts."""

    clause: str
    most: Mapping[str, int]


class Cost(Struct, frozen=True):
    """The allowed cost of one operation. `when` names the condition, if the cost depends on one."""

    when: str
    bounds: tuple[Bound, ...]

    def allowed(self) -> list[tuple[str, str, int]]:
        """Count, clause and bound for every count, in the order of `METERED`."""
        named = {name: (name, b.clause, most) for b in self.bounds for name, most in b.most.items()}
        return [named.get(name, (name, self.bounds[0].clause, 0)) for name in METERED]

    def each(self) -> Cost:
        """Give the cost where keys and values have launches of their own: twice as many."""
        most = ({n: 2 * m if n == "launches" else m for n, m in b.most.items()} for b in self.bounds)
        return Cost(self.when, tuple(map(Bound, (b.clause for b in self.bounds), most)))

    def breaches(self, meter: Mapping[str, int]) -> list[tuple[str, str]]:
        """Clause and sentence for each count beyond its bound."""
        if meter == NOTHING_COUNTED:
            return []
        bounds = {name: most for b in self.bounds for name, most in b.most.items()}
        if all(meter.get(name, ENDLESS) <= bounds.get(name, 0) for name in METERED):
            return []
        when = f" ({self.when})" if self.when else ""
        return [
            (clause, f"{name}: at most {most} allowed{when}, found {meter.get(name)}")
            for name, clause, most in self.allowed()
            if meter.get(name, most + 1) > most
        ]


class Layer(Struct, frozen=True):
    """One cache of a round: its config, what it said last, and what it says after the operation."""

    config: Config
    before: Mapping[str, Any]
    after: Mapping[str, Any]

    @property
    def live(self) -> int:
        """Rows that a next query would find beside itself."""
        offset, window = int(self.before.get("offset") or 0), self.config.window
        return offset if window is None else min(offset, window - 1)

    @property
    def drafts(self) -> int:
        """Rows drafted so far."""
        return max(0, int(self.before.get("drafted") or 0) - int(self.before.get("offset") or 0))

    @property
    def moved(self) -> bool:
        """Whether storage was replaced, judged by the cache's own capacity."""
        before, after = self.before.get("capacity"), self.after.get("capacity")
        return before is None or after is None or before != after


class Case(Struct, frozen=True):
    """One operation that was performed or refused, and the facts before and after it."""

    op: Operation
    kind: str
    cache: Layer
    """The cache it is for."""
    got: Step
    saved: Mapping[str, int] = {}
    """Bytes of snapshots by name, as they were before the operation."""
    arrived: Mapping[str, int] = {}
    """The rows of the parcel that the operation uses, by the layer that they are of."""
    sequences: int = 0
    """Sequences of the store's batch."""
    layers: tuple[Layer, ...] = ()
    """The caches of a whole round."""
    again: bool = False
    """Whether the cache has done the same before, with as many rows, queries and other inputs."""
    append: Callable[[Case], Cost] | None = None
    """The cost of an append to this kind of cache."""
    shares: bool = False
    """Whether a pool shares pages of equal rows: one that it took may be given back in the same operation."""

    @property
    def config(self) -> Config:
        """What the cache was opened with."""
        return self.cache.config

    @property
    def resident(self) -> bool:
        """Whether the rows were on the device already."""
        return bool(self.op.get("resident"))

    def returned(self, what: str) -> int:
        """Bytes of the arrays that were read, by the beginning of their names."""
        arrays = ((n, a) for n, a in self.got.arrays.items() if n.partition(".")[0] == what)
        return sum(a.nbytes for _, a in arrays if a is not None)

    @property
    def entries(self) -> int:
        """Bytes of all lengths that a device may keep for it."""
        return ENTRY * (1 + (self.config.layers or 0) * (1 + self.sequences))


Bounded = Callable[[Case], Cost]


def bounded(clause: str, when: str = "", /, **most: int) -> Cost:
    """Give a cost that one clause bounds."""
    return Cost(when, (Bound(clause, most),))


def crossing(case: Case, nbytes: int, arrays: int = 2) -> Bound:
    """Bound input rows: rows from the host cross once, rows on the device not at all."""
    if case.resident:
        return Bound("RESIDENCY-1", {"host_to_device": 0, "device_to_host": 0})
    return Bound("RESIDENCY-2", {"host_to_device": nbytes + arrays * PADDING, "device_to_host": 0})


def written(case: Case, clause: str, nbytes: int, launches: int, allocations: int = 0) -> Bound:
    """Bound the writing of rows; rows from the host may need a place to arrive in, and a wait."""
    arriving = 0 if case.resident else BUFFER
    most = {"device_to_device": nbytes, "launches": launches}
    return Bound(clause, {**most, "allocations": allocations + arriving, "synchronisations": arriving})


def how(case: Case) -> str:
    """Where the rows come from."""
    return "resident" if case.resident else "from the host"


def no_rows(case: Case) -> Cost:
    """Zero rows."""
    return bounded("RESIDENCY-7", "no rows")


def nothing(case: Case) -> Cost:
    """Questions, and giving memory back."""
    return bounded("RESIDENCY-7")


def refused(case: Case) -> Cost:
    """A refusal is decided on the host."""
    return bounded("RESIDENCY-8", "refused")


def bookkeeping(case: Case) -> Cost:
    """Operations that change only lengths: their cost does not depend on the length of the context."""
    layers = max(1, len(case.layers))
    return bounded("RESIDENCY-6", host_to_device=case.entries * layers, launches=layers, synchronisations=layers)
