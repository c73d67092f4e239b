"""What must be true of the published records before a release: `python -m tools.release_check`.

Each run record is of the chapters at hand and passes every clause, and the Markdown beside each record is what the
record renders to. Prints what is not so; exit status 1 where anything is printed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from kvconform.commands.report import load
from kvconform.runner.record import output
from kvspec.reading import clauses
from kvspec.records.run import Record

PUBLISHED = Path("reports/published")

SPEC = "../../../spec/kvspec/chapters"
"""The chapters, as seen from a published report."""

WITHIN_A_BOUND = {"opencl-fast", "cuda-cpu-fast", "cupy-fast"}
"""Adapters that claim outputs within the bound, and not to the bit."""


LENT = {"cupy", "cupy-fast"}
"""Adapters whose device is there for minutes."""


def faults(folder: Path) -> Iterator[str]:
    """What is wrong with the records in the folders of a folder."""
    for path in sorted(folder.glob("*/*.json")):
        (record,) = load([path])
        if isinstance(record, Record):
            yield from (f"{path}: {fault}" for fault in _faults(record))
        page = path.with_name(f"{output.forms_of(record).page}.md")
        if page.read_text(encoding="utf-8") != output.text([record], "markdown", spec=SPEC):
            yield f"{page}: is not what {path.name} renders to: kvconform report --format markdown --spec {SPEC}"


def _faults(record: Record) -> Iterator[str]:
    if record.spec.hash != clauses.digest():
        yield "the chapters changed; run it again and publish that"
    if [c.id for c in record.clauses] != list(clauses.index()) or not passes(record):
        yield "not every clause of the chapters passes"
    if not ended_well(record):
        yield "the run did not end well"


def passes(record: Record) -> bool:
    """Whether each clause passes that the adapter may not leave out. It may leave out chapters, clauses on storage
    of chapters that it claims at level visible, and clauses where outputs are not to the bit."""
    name, chapters = record.adapter["name"], record.adapter["chapters"]
    stored = {chapter for chapter, claim in chapters.items() if claim["level"] == "storage"}
    lacks = {c.id for c in record.clauses if c.level == "storage" and c.chapter not in stored}
    may = {c.id for c in record.clauses if c.chapter not in chapters or name in WITHIN_A_BOUND} | lacks
    return all(c.verdict == "PASS" or (c.verdict == "NOT_CLAIMED" and c.id in may) for c in record.clauses)


def ended_well(record: Record) -> bool:
    """Whether the run judged all that it wanted to, and found nothing."""
    return (record.exit_status, record.partial, record.problems) == (0, False, [])


def cut_short(record: Record) -> bool:
    """Whether this is a run on a lent GPU that was interrupted, and found nothing until then. A release needs a
    whole one; until then this one says what it saw."""
    found = {c.verdict for c in record.clauses} - {"PASS", "NOT_CLAIMED", "NOT_RUN"}
    return record.adapter["name"] in LENT and record.partial and not (found or record.problems or record.failures)


def main() -> int:
    """Look at the published records of the checkout that is the working directory."""
    lines = list(faults(PUBLISHED))
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
