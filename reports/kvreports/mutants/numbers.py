"""The mutation matrix in numbers: groups of mutants, and of each how many were found, by what, and how soon."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median

from kvspec.records.mutants import SOURCES, Matrix, MutantRecord, result

Rows = list[MutantRecord]

APART = ("systematic", "control", "fake")
"""Classes that are no real bugs."""


@dataclass(frozen=True)
class Group:
    """Mutants that belong together."""

    name: str
    rows: Rows

    @property
    def found(self) -> Rows:
        """Those that were found."""
        return [m for m in self.rows if m.killed]

    @property
    def argued(self) -> int:
        """How many are argued to be equivalent."""
        return sum(bool(m.equivalent) for m in self.rows)

    @property
    def wrong(self) -> Rows:
        """Those of which something came that must not."""
        return [m for m in self.rows if result(m).isupper()]

    def by(self, source: str) -> str:
        """The share that a source found of those it was tried on."""
        tried = [m.sources[source] for m in self.rows if source in m.sources]
        return f"{sum(tried)} of {len(tried)}" if tried else ""

    @property
    def right(self) -> str:
        """How often the clause that is broken was blamed."""
        told = [m.right for m in self.found if m.right is not None]
        return f"{sum(told)} of {len(told)}" if told else ""

    @property
    def operations(self) -> tuple[float, int]:
        """Operations of the shortest traces: their median, and the most."""
        lengths = [m.operations for m in self.found] or [0]
        return median(lengths), max(lengths)

    def row(self) -> list[str]:
        """It as a row of a table, under `HEAD`."""
        middle, most = self.operations
        counts = map(str, (len(self.rows), len(self.found), self.argued, len(self.wrong)))
        lengths = f"{middle:g}, at most {most}" if self.found else ""
        return [self.name, *counts, *map(self.by, SOURCES), self.right, lengths]


HEAD = ("", "mutants", "found", "equivalent", "wrong", *SOURCES, "right clause", "operations")
"""The columns of a table of groups."""


def grouped(rows: Iterable[MutantRecord], name: Callable[[MutantRecord], str]) -> list[Group]:
    """Groups by name, in the order in which they are met."""
    found: dict[str, Rows] = {}
    for m in rows:
        found.setdefault(name(m), []).append(m)
    return [Group(n, of) for n, of in found.items()]


def real(record: Matrix) -> Rows:
    """The real bugs: those that were seen somewhere."""
    return [m for m in record.mutants if m.bug_class not in APART and m.link]


def anomalies(record: Matrix) -> Rows:
    """Those that go wrong in the ways real ones do, though nobody reported them."""
    return [m for m in record.mutants if m.bug_class not in APART and not m.link]


def apart(record: Matrix, which: str) -> Rows:
    """The systematic ones, the controls or the fakes."""
    return [m for m in record.mutants if m.bug_class == which]


def module(m: MutantRecord) -> str:
    """Where a systematic fault is: `reference/ring` of `reference/ring.rewind: to < 0: Lt swapped`."""
    return m.id.partition(":")[0].partition(".")[0]


def whole(record: Matrix) -> list[Group]:
    """Real bugs, systematic faults of each part, controls: what is told at once."""
    parts = grouped(apart(record, "systematic"), lambda m: f"systematic: {module(m).partition('/')[0]}")
    ends = [Group(f"{which}s", apart(record, which)) for which in ("control", "fake")]
    return [
        g
        for g in (Group("real bugs", real(record)), Group("anomalies", anomalies(record)), *parts, *ends)
        if g.rows
    ]


def headline(record: Matrix) -> str:
    """One sentence."""
    rows = record.mutants
    must = [m for m in rows if not m.equivalent and m.control != "lives"]
    found = sum(m.killed for m in must)
    wrong = sum(result(m).isupper() for m in rows)
    said = f"{found:,} of {len(must):,} wrong caches were found in {record.seconds:g} s"
    argued = f"{sum(bool(m.equivalent) for m in rows):,} are argued to be no faults"
    lives = [m for m in rows if m.control == "lives"]
    right = f"{sum(not m.killed for m in lives)} of {len(lives)} right ones were left alone"
    return f"{said}; {argued}; {right}" + (f"; {wrong} are not as they must be" if wrong else "")
