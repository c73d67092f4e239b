"""Writes what a command makes: a record and its renderings, to a folder or to standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from kvreports import terminal
from kvspec.errors import BadInput
from kvspec.reading.clauses import index
from kvspec.records.document import Document
from kvspec.records.run import Record


class Forms(NamedTuple):
    """The names of the files that hold a record and its renderings, and what renders records of that kind."""

    json: str
    page: str
    folder: str
    """The folder of `kvreports` whose modules `html`, `markdown` and `text` render such records."""
    arguments: Callable[[Sequence[Any]], Sequence[Any]]
    """What these modules take."""


FORMS = {
    "Record": Forms("record", "report", "run", lambda records: (records, index())),
    "Profile": Forms("profile", "profile", "profile", lambda records: tuple(reversed(records))),
    "Matrix": Forms("mutants", "mutants", "mutants", tuple),
    "ServingRecord": Forms("record", "report", "serving", tuple),
    "Difference": Forms("difference", "difference", "difference", tuple),
}
"""Every kind of record, by its class: a command reads the kinds that it makes. Runs are rendered side by side, a
profile beside an earlier one, others alone. A difference is only printed, so it has no page."""


def forms_of(record: Document) -> Forms:
    """Give the forms of a record."""
    return next(FORMS[kind.__name__] for kind in type(record).__mro__ if kind.__name__ in FORMS)


def _rendered(records: Sequence[Document], form: str, **options: Any) -> str:
    """Render records as html, markdown or text. The renderer is imported only now, because most commands need one
    form."""
    forms = forms_of(records[0])
    render: Callable[..., str] = import_module(f"kvreports.{forms.folder}.{form}").render
    return render(*forms.arguments(records), **options)


def _json(record: Document) -> str:
    from kvreports import json_file  # a terminal shows a table

    return json_file.dumps(record)


def write(record: Document, folder: Path) -> Path:
    """Write a record, its Markdown and its page into a folder; returns the page's path. Raises BadInput."""
    forms = forms_of(record)
    page = folder / f"{forms.page}.html"
    leave(folder / f"{forms.json}.json", _json(record))
    leave(page.with_suffix(".md"), _rendered([record], "markdown"))
    leave(page, _rendered([record], "html"))
    return page


def text(records: Sequence[Document], form: str, unclaimed: bool = False, spec: str = "") -> str:
    """Records as text: table, json or markdown.

    With `unclaimed` the table of runs lists those clauses. With `spec`, the address of the chapters' folder, ids in
    the Markdown of runs, differences and mutants are links.
    """
    if form == "json":
        return "".join(map(_json, records))
    options: dict[str, Any] = {}
    if form == "markdown" and forms_of(records[0]).folder != "profile":
        options["spec"] = spec
    if form == "table" and isinstance(records[0], Record):
        options["unclaimed"] = unclaimed
    return _rendered(records, form.replace("table", "text"), **options)


def page(records: Sequence[Document]) -> str:
    """Records of one kind as an HTML page."""
    return _rendered(records, "html")


def deliver(records: Sequence[Document], form: str, write: Callable[[], Path] | None = None, **options: Any) -> int:
    """Print records as `text` gives them, then write their report: a file that cannot be written costs no verdict.

    Gives 0; 3 if the report could not be written, after a line on standard error that says why.
    """
    shown = text(records, form, **options)
    if form == "table":
        terminal.write(sys.stdout, shown)
    else:
        sys.stdout.write(shown)
        sys.stdout.flush()
    return 0 if write is None else written(write)


def written(write: Callable[[], Path]) -> int:
    """Write a report and say where. Gives 3 if it cannot be written, after a line that says why."""
    try:
        sys.stderr.write(f"\nkvconform: report at {write()}\n")
    except BadInput as e:
        sys.stderr.write(f"\nkvconform: the report is not written: {e}\n")
        return 3
    return 0


def leave(path: Path, content: str) -> None:
    """Write one file of a report. Raises BadInput."""
    from kvreports import json_file

    make_folder(path.parent)
    json_file.write(path, content)


def make_folder(folder: Path) -> None:
    """Make a folder if it is not there, also before hours of work whose result goes into it. Raises BadInput."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise BadInput(f"{folder}: cannot be made ({e.strerror}); name another folder") from None
