"""`kvconform report RECORD...`: records rendered side by side; a journal gives the record of a run cut short."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from kvconform import journal, output
from kvconform.runrecord import record
from kvreports import html, jsonfile, profilefile, profilehtml, profiletext
from kvspec.clauses import index
from kvspec.contract import description
from kvspec.errors import BadInput
from kvspec.record import Record


def main(options: Namespace) -> int:
    """Render; 0 unless a record cannot be read."""
    paths = [Path(p) for p in options.records]
    if any(profilefile.holds(path) for path in paths):
        return _profile(paths, options)
    records = [load(path) for path in paths]
    if options.html:
        output.leave(Path(options.html), html.render(records, index()))
        sys.stderr.write(f"kvconform: report at {options.html}\n")
    else:
        sys.stdout.write(output.shown(records, options.format))
    return 0


def _profile(paths: list[Path], options: Namespace) -> int:
    """Render the record of a profile."""
    if len(paths) > 1:
        raise BadInput("the record of a profile is rendered by itself; name one record")
    found = profilefile.load(paths[0])
    if options.html:
        output.leave(Path(options.html), profilehtml.render(found))
        sys.stderr.write(f"kvconform: report at {options.html}\n")
    else:
        sys.stdout.write(profiletext.shown(found, options.format))
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
