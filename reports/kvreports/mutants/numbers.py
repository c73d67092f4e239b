"""The mutation matrix in numbers: for each group of mutants, how many were found, by what, and how soon."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median

from kvspec.records.mutants import SOURCES, Matrix, MutantRecord, result

Rows = list[MutantRecord]

NOT_BUGS = ("systematic", "control", "fake")
"""Classes of mutants that are not real bugs."""


@dataclass(frozen=True)
class Group:
    """Mutants that belong together."""

    name: str
    rows: Rows

    @property
    def killed(self) -> Rows:
        """The mutants that the suite found."""
        return [m for m in self.rows if m.killed]

    @property
    def wrong(self) -> Rows:
        """The mutants with a wrong result: not found, or found wrongly."""
        return [m for m in self.rows if result(m).isupper()]

    def by(self, source: str) -> str:
        """How many mutants a source found, of those it was tried on."""
        return _of(m.sources[source] for m in self.rows if source in m.sources)

    def row(self) -> list[str]:
        """The group as a row of a table, under `HEAD`."""
        argued = sum(bool(m.equivalent) for m in self.rows)
        counts = map(str, (len(self.rows), len(self.killed), argued, len(self.wrong)))
        right = _of(m.right for m in self.killed if m.right is not None)
        lengths = [m.operations for m in self.killed]
        operations = f"{median(lengths):g}, at most {max(lengths)}" if lengths else ""
        return [self.name, *counts, *map(self.by, SOURCES), right, operations]


HEAD = ("", "mutants", "found", "equivalent", "wrong", *SOURCES, "right clause", "operations")
"""The columns of a table of groups."""


def _of(truths: Iterable[bool]) -> str:
    truths = list(truths)
    return f"{sum(truths)} of {len(truths)}" if truths else ""


def grouped(rows: Iterable[MutantRecord], name: Callable[[MutantRecord], str]) -> list[Group]:
    """Groups by name, in the order of their first mutants."""
    groups: dict[str, Rows] = {}
    for m in rows:
        groups.setdefault(name(m), []).append(m)
    return [Group(name, rows) for name, rows in groups.items()]


def real(record: Matrix) -> Rows:
    """The real bugs: those that were seen somewhere."""
    return [m for m in record.mutants if m.bug_class not in NOT_BUGS and m.link]


def anomalies(record: Matrix) -> Rows:
    """Bugs of the same kinds as the real ones, which were not reported anywhere."""
    return [m for m in record.mutants if m.bug_class not in NOT_BUGS and not m.link]


def of_class(record: Matrix, name: str) -> Rows:
    """The mutants of one class: systematic, control, fake."""
    return [m for m in record.mutants if m.bug_class == name]


def module(m: MutantRecord) -> str:
    """The module of a systematic fault: `reference/ring` in `reference/ring.rewind: to < 0: Lt swapped`."""
    return m.id.partition(":")[0].partition(".")[0]


def modules(record: Matrix) -> list[Group]:
    """The systematic faults by module."""
    return grouped(of_class(record, "systematic"), module)


def equivalents(record: Matrix) -> list[Group]:
    """The equivalent mutants by the reason."""
    return grouped((m for m in record.mutants if m.equivalent), lambda m: m.equivalent)


def whole(record: Matrix) -> list[Group]:
    """The summary: real bugs, anomalies, systematic faults of each part, controls."""
    parts = grouped(of_class(record, "systematic"), lambda m: f"systematic: {module(m).partition('/')[0]}")
    ends = [Group(f"{name}s", of_class(record, name)) for name in ("control", "fake")]
    groups = [Group("real bugs", real(record)), Group("anomalies", anomalies(record)), *parts, *ends]
    return [group for group in groups if group.rows]


def wrong(record: Matrix) -> Rows:
    """Every mutant with a wrong result."""
    return [m for group in whole(record) for m in group.wrong]


def headline(record: Matrix) -> str:
    """The whole matrix in one sentence."""
    correct = [m for m in record.mutants if m.control == "lives"]
    broken = [m for m in record.mutants if not m.equivalent and m.control != "lives"]
    parts = [
        f"Found {sum(m.killed for m in broken):,} of {len(broken):,} wrong caches in {record.seconds:g} s",
        f"{sum(bool(m.equivalent) for m in record.mutants):,} mutants are argued to be equivalent",
        f"{sum(not m.killed for m in correct)} of {len(correct)} correct caches passed",
    ]
    parts += [f"{record.left:,} were not hunted"] if record.left else []
    count = sum(result(m).isupper() for m in record.mutants)
    parts += [f"{count} result{' is' if count == 1 else 's are'} wrong"] if count else []
    return "; ".join(parts)
