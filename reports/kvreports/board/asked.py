"""What the board shows of engines that were asked by a probe: what they were asked, and what was wrong."""

from __future__ import annotations

from dataclasses import dataclass

from kvspec.records.asked import AskedRecord

HEAD = (
    "engine",
    "version",
    "computes in",
    "probe",
    "has",
    "histories",
    "queries",
    "wrong",
    "breaks",
    "shortest that is wrong",
)
"""The columns of the table."""

INTRODUCTION = """\
Each row is an engine that loaded a probe (`kvconform ask`) and decoded histories through its own cache, in this
process: no server, and no adapter of a cache. Where its memory has several sequences, it lived random lives of
these too. *Has* is what it was asked beside appends. A bug may show in several histories."""


@dataclass(frozen=True)
class Asked:
    """The record of an engine, and the address of the record."""

    record: AskedRecord
    address: str

    @property
    def row(self) -> tuple[str, ...]:
        """The cells of the table behind the first, by `HEAD`."""
        record, precision = self.record, self.record.precision
        rows = f", {precision.rows} rows" if precision.rows else ""
        ids = dict.fromkeys(clause for failure in record.failures for clause in failure.clauses)
        return (
            record.version,
            precision.dtype + rows,
            f"{record.probe.architecture}: {record.probe.layers}",
            ", ".join(record.abilities),
            str(record.histories),
            str(record.queries),
            str(len(record.failures) or ""),
            ", ".join(ids),
            record.failures[0].history if record.failures else "",
        )


def headline(found: list[Asked]) -> str:
    """How many engines were asked, by how many queries, and how many of them answered all rightly."""
    engines = {one.record.engine for one in found}
    wrong = {one.record.engine for one in found if one.record.failures}
    count = f"{len(engines)} engine{'s were' if len(engines) != 1 else ' was'} asked by a probe"
    queries = sum(one.record.queries for one in found)
    return f"{count}, by {queries} queries. Without a wrong answer: {len(engines - wrong) or 'none'}"
