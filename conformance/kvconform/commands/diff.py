"""`kvconform diff OLD NEW`: what changed from an older record to a newer one. Ends with 1 where something broke
anew, with 3 where nothing did and the newer record is no answer."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from kvconform.commands.report import load
from kvconform.runner.record import output
from kvreports.difference.compare import compare
from kvreports.difference.judged import Judgement, of_run, of_server
from kvspec.errors import BadInput
from kvspec.reading.clauses import withdrawn
from kvspec.records.document import Document
from kvspec.records.run import Record
from kvspec.records.serving import ServingRecord


def main(options: Namespace) -> int:
    """Compare the records, and print what changed. Raises BadInput for what cannot be read or compared."""
    old, new = (load([Path(name)])[0] for name in (options.old, options.new))
    if type(old) is not type(new):
        raise BadInput(f"{old.NAME} and {new.NAME} cannot be compared; name two of one kind")
    difference = compare(_judgement(old), _judgement(new), withdrawn())
    output.deliver([difference], options.format, spec=options.spec)
    return difference.exit_status


def _judgement(record: Document) -> Judgement:
    """What a record says of each clause. Raises BadInput for a kind of record without clauses."""
    if isinstance(record, Record):
        return of_run(record)
    if isinstance(record, ServingRecord):
        return of_server(record)
    raise BadInput(f"{record.NAME} has no verdicts; `kvconform report OLD NEW` compares two profiles")
