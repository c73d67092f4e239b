"""What a command leaves behind: a record and its renderings, in a folder or on standard output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kvreports import json_file
from kvreports.mutants import html as mutants_html
from kvreports.mutants import markdown as mutants_markdown
from kvreports.mutants import text as mutants_text
from kvreports.profile import html as profile_html
from kvreports.profile import markdown as profile_markdown
from kvreports.profile import text as profile_text
from kvreports.run import html as run_html
from kvreports.run import markdown as run_markdown
from kvreports.run import text as run_text
from kvspec.errors import BadInput
from kvspec.reading.clauses import index
from kvspec.records.document import Document
from kvspec.records.mutants import Matrix
from kvspec.records.profile import Profile
from kvspec.records.run import Record

Render = Callable[[Sequence[Any]], str]


class Forms(NamedTuple):
    """The names of the files that hold a record and its renderings, and what renders records of that kind."""

    json: str
    page: str
    html: Render
    markdown: Render
    table: Render


FORMS: dict[type[Document], Forms] = {
    Record: Forms(
        "record",
        "report",
        lambda records: run_html.render(records, index()),
        lambda records: run_markdown.render(records, index()),
        lambda records: run_text.render(records, index()),
    ),
    Profile: Forms(
        "profile",
        "profile",
        lambda records: profile_html.render(*records),
        lambda records: profile_markdown.render(*records),
        lambda records: profile_text.render(*records),
    ),
    Matrix: Forms(
        "mutants",
        "mutants",
        lambda records: mutants_html.render(*records),
        lambda records: mutants_markdown.render(*records),
        lambda records: mutants_text.render(*records),
    ),
}
"""Every kind of record. Runs are rendered side by side; a profile and a matrix by themselves."""


def write(record: Document, folder: Path) -> Path:
    """Write a record, its Markdown and its page into a folder; returns the page's path. Raises BadInput."""
    forms = FORMS[type(record)]
    page = folder / f"{forms.page}.html"
    leave(folder / f"{forms.json}.json", json_file.dumps(record))
    leave(page.with_suffix(".md"), forms.markdown([record]))
    leave(page, forms.html([record]))
    return page


def text(records: Sequence[Document], form: str) -> str:
    """Records of one kind as text: table, json or markdown."""
    if form == "json":
        return "".join(map(json_file.dumps, records))
    forms = FORMS[type(records[0])]
    return (forms.markdown if form == "markdown" else forms.table)(records)


def page(records: Sequence[Document]) -> str:
    """Records of one kind as an HTML page."""
    return FORMS[type(records[0])].html(records)


def leave(path: Path, content: str) -> None:
    """Write one file of a report. Raises BadInput."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise BadInput(f"{path.parent}: cannot be made ({e.strerror})") from None
    json_file.write(path, content)
