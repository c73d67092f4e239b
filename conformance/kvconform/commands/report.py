"""`kvconform report RECORD...`: renders records side by side. It also reads the journal of an interrupted run or
profile."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from kvconform.message import tell
from kvconform.runner import journal
from kvconform.runner.record import output
from kvconform.runner.record.record import record
from kvreports import json_file
from kvspec.contract import description
from kvspec.errors import BadInput
from kvspec.reading.clauses import index
from kvspec.records.document import Document
from kvspec.records.mutants import Matrix
from kvspec.records.profile import Profile
from kvspec.records.run import Record
from kvspec.records.serving import ServingRecord

MOST: dict[type[Document], int] = {Profile: 2, Matrix: 1, ServingRecord: 1}
"""Records of a kind that are rendered together; any number of runs is."""


def main(options: Namespace) -> int:
    """Render the records and return 0. Raises BadInput for one that cannot be read."""
    records = load([Path(p) for p in options.records])
    if options.html:
        output.leave(Path(options.html), output.page(records))
        tell(f"report at {options.html}")
    else:
        output.deliver(records, options.format, unclaimed=options.unclaimed, spec=options.spec)
    return 0


def load(paths: Sequence[Path]) -> Sequence[Document]:
    """The records in these files. Raises BadInput."""
    if any(journal.is_of_profile(path) for path in paths):
        if len(paths) > 1:
            raise BadInput("name the journal of a profile alone")
        return [json_file.from_json(journal.read_profile(paths[0]), Profile, str(paths[0]))]
    for kind, most in MOST.items():
        if any(json_file.begins(path, kind) for path in paths):
            if len(paths) > most:
                raise BadInput(
                    "name one record of mutants or of a server, or one or two of profiles, the older one first"
                )
            return [json_file.load(path, kind) for path in paths]
    return [load_run(path) for path in paths]


def load_run(path: Path) -> Record:
    """Load the record of a run, or rebuild one from a journal. Raises BadInput."""
    if path.suffix != ".jsonl":
        return json_file.load(path, Record)
    try:
        start, total = journal.read(path)
        selected = {i: index()[i] for i in start["selected"] if i in index()}
        whole = record(total, description(start["adapter"]).took(start["takes"]), selected, start["about"])
        return json_file.loads(json_file.dumps(whole), Record, str(path))
    except (AttributeError, KeyError, TypeError, ValueError) as e:
        if isinstance(e, BadInput):
            raise
        raise BadInput(f"{path}: not the journal of a run, or not all of it ({type(e).__name__}: {e})") from None
