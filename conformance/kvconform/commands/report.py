"""`kvconform report RECORD...`: records rendered side by side; a journal gives the record of a run cut short."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from kvconform import journal, output
from kvconform.runrecord import record
from kvreports import html, jsonfile
from kvspec.clauses import index
from kvspec.contract import description
from kvspec.errors import BadInput
from kvspec.record import Record


def main(options: Namespace) -> int:
    """Render; 0 unless a record cannot be read."""
    records = [load(Path(p)) for p in options.records]
    if options.html:
        output.leave(Path(options.html), html.render(records, index()))
        sys.stderr.write(f"kvconform: report at {options.html}\n")
    else:
        sys.stdout.write(output.shown(records, options.format))
    return 0


def load(path: Path) -> Record:
    """A record, or what a journal holds of one. Raises BadInput."""
    if path.suffix != ".jsonl":
        return jsonfile.load(path)
    try:
        start, total = journal.read(path)
        selected = {i: index()[i] for i in start["selected"] if i in index()}
        whole = record(total, description(start["adapter"]), selected, start["about"])
        return jsonfile.loads(jsonfile.dumps(whole), str(path))
    except (AttributeError, KeyError, TypeError, ValueError) as e:
        if isinstance(e, BadInput):
            raise
        raise BadInput(f"{path}: not the journal of a run, or not all of it ({type(e).__name__}: {e})") from None
