"""`kvconform report RECORD...`: renders records side by side; the journal of an interrupted run serves too."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kvconform.runner import journal, output
from kvconform.runner.record import record
from kvreports.mutants import file as mutants_file
from kvreports.mutants import html as mutants_html
from kvreports.mutants import text as mutants_text
from kvreports.profile import file as profile_file
from kvreports.profile import html as profile_html
from kvreports.profile import text as profile_text
from kvreports.run import file as run_file
from kvreports.run import html as run_html
from kvspec.contract import description
from kvspec.errors import BadInput
from kvspec.reading.clauses import index
from kvspec.records.run import Record

Loads = Callable[[Path], Any]
Renders = Callable[[Any], str]
Shows = Callable[[Any, str], str]

ALONE: dict[str, tuple[Loads, Renders, Shows]] = {
    profile_file.MARK: (profile_file.load, profile_html.render, profile_text.shown),
    mutants_file.MARK: (mutants_file.load, mutants_html.render, mutants_text.shown),
}
"""Records other than a run's, by the field they begin with: functions that read them, render a page, and a text."""


def main(options: Namespace) -> int:
    """Render the records and return 0. Raises BadInput for one that cannot be read."""
    paths = [Path(p) for p in options.records]
    for mark, rendered in ALONE.items():
        if any(run_file.begins(path, mark) for path in paths):
            return _alone(paths, options, *rendered)
    records = [load(path) for path in paths]
    if options.html:
        output.leave(Path(options.html), run_html.render(records, index()))
        sys.stderr.write(f"kvconform: report at {options.html}\n")
    else:
        sys.stdout.write(output.shown(records, options.format))
    return 0


def _alone(paths: list[Path], options: Namespace, load: Loads, page: Renders, shown: Shows) -> int:
    """Render a record of a profile or of mutants, by itself."""
    if len(paths) > 1:
        raise BadInput("the record of a profile or of mutants is rendered by itself; name one record")
    found = load(paths[0])
    if options.html:
        output.leave(Path(options.html), page(found))
        sys.stderr.write(f"kvconform: report at {options.html}\n")
    else:
        sys.stdout.write(shown(found, options.format))
    return 0


def load(path: Path) -> Record:
    """Load a record, or rebuild one from a journal. Raises BadInput."""
    if path.suffix != ".jsonl":
        return run_file.load(path)
    try:
        start, total = journal.read(path)
        selected = {i: index()[i] for i in start["selected"] if i in index()}
        whole = record(total, description(start["adapter"]), selected, start["about"])
        return run_file.loads(run_file.dumps(whole), str(path))
    except (AttributeError, KeyError, TypeError, ValueError) as e:
        if isinstance(e, BadInput):
            raise
        raise BadInput(f"{path}: not the journal of a run, or not all of it ({type(e).__name__}: {e})") from None
