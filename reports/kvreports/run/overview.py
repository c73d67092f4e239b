"""Records side by side: one column an adapter, one row a clause, grouped by chapter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kvreports.clauses import anchors, chapter_order, order
from kvreports.run.standing import Standing, counts, standing
from kvspec.reading.clauses import Clause
from kvspec.records.run import ClauseRecord, Record

Clauses = Mapping[str, Clause]
"""The clauses of this spec, by their ids."""


@dataclass(frozen=True)
class Column:
    """One record; `label` is different for each, `number` counts from 1."""

    number: int
    label: str
    name: str
    record: Record
    standing: Standing
    counts: dict[str, int]
    clauses: dict[str, ClauseRecord]

    @property
    def partial(self) -> bool:
        """Whether the run did not finish."""
        return self.record.partial


@dataclass(frozen=True)
class Unknown:
    """A clause that this spec lacks, as a record describes it."""

    id: str
    chapter: str
    level: str
    text: str
    reason: str = ""


@dataclass(frozen=True)
class Row:
    """One clause and its record in each column; None where that run does not hold it."""

    id: str
    anchor: str
    clause: Clause | Unknown
    known: bool
    """True if the clause's text comes from this spec, False if from a record."""
    cells: list[ClauseRecord | None]

    @property
    def verdicts(self) -> list[str]:
        """Its verdicts, each once."""
        return list(dict.fromkeys(c.verdict for c in self.cells if c))

    @property
    def claimed(self) -> bool:
        """Whether an adapter claims it."""
        return self.verdicts != ["NOT_CLAIMED"]

    @property
    def agreed(self) -> bool:
        """Whether several runs have one verdict on it, given at one level."""
        return (
            len(self.cells) > 1
            and None not in self.cells
            and len({(c.verdict, c.judged_at) for c in self.cells if c}) == 1
        )


@dataclass(frozen=True)
class Chapter:
    """The clauses of one chapter."""

    name: str
    rows: list[Row]

    @property
    def prefix(self) -> str:
        """The beginning of its ids."""
        return self.rows[0].id.rpartition("-")[0]

    @property
    def unclaimed(self) -> int:
        """How many of its clauses no adapter claims."""
        return sum(not row.claimed for row in self.rows)

    @property
    def claimed(self) -> bool:
        """Whether an adapter claims any of its clauses."""
        return self.unclaimed < len(self.rows)

    def counts(self, column: int) -> dict[str, int]:
        """Clauses by verdict in one column (counted from 0)."""
        return Counter(c.verdict for r in self.rows if (c := r.cells[column]) is not None)


@dataclass(frozen=True)
class Overview:
    """All records. `elsewhere` counts the clauses of this spec that no record holds."""

    columns: list[Column]
    chapters: list[Chapter]
    elsewhere: int
    anchors: dict[str, str] = field(default_factory=dict)


def overview(records: Sequence[Record], clauses: Clauses) -> Overview:
    """Put the records side by side."""
    columns = [_column(n, r, label) for n, (r, label) in enumerate(zip(records, _labels(records), strict=True), 1)]
    ids = sorted({id_ for c in columns for id_ in c.clauses}, key=order)
    anchor = anchors(ids)
    chapters: dict[str, list[Row]] = {}
    for id_ in ids:
        row = _row(id_, anchor[id_], columns, clauses)
        chapters.setdefault(row.clause.chapter, []).append(row)
    made = [Chapter(p, chapters[p]) for p in sorted(chapters, key=chapter_order)]
    return Overview(columns, made, len(set(clauses) - set(ids)), anchor)


def _row(id_: str, anchor: str, columns: list[Column], clauses: Clauses) -> Row:
    cells = [c.clauses.get(id_) for c in columns]
    seen = next(c for c in cells if c is not None)
    clause = clauses.get(id_) or Unknown(id_, seen.chapter, seen.level, seen.text)
    return Row(id_, anchor, clause, id_ in clauses, cells)


def _column(number: int, record: Record, label: str) -> Column:
    by_id = {c.id: c for c in record.clauses}
    return Column(number, label, adapter_name(record), record, standing(record), counts(record), by_id)


def engine_version(record: Record) -> str:
    """The version of the adapter's engine."""
    return str(record.adapter.get("version") or "unknown")


def adapter_name(record: Record) -> str:
    """The adapter's name; its command where it has none."""
    name = record.adapter.get("name")
    return name if isinstance(name, str) and name else " ".join(record.command[-2:]) or "unnamed adapter"


def _labels(records: Sequence[Record]) -> list[str]:
    """A name for each record. Equal names get the version; if they are still equal, a number."""
    names = [adapter_name(r) for r in records]
    full = [f"{n} {r.adapter.get('version') or ''}".strip() for n, r in zip(names, records, strict=True)]
    labels = []
    for i, name in enumerate(names):
        if names.count(name) > 1:
            name = full[i] if full.count(full[i]) == 1 else f"{full[i]} ({full[: i + 1].count(full[i])})"
        labels.append(name)
    return labels
