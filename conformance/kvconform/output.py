"""What a run leaves behind: the record and its renderings, in a folder or on standard output."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kvreports import html, jsonfile, markdown, matrixhtml, matrixtext, profilefile, profilehtml, profiletext, text
from kvspec import clauses
from kvspec.errors import BadInput
from kvspec.mutants_record import Matrix
from kvspec.profile_record import Profile
from kvspec.record import Record


def write(record: Record, folder: Path) -> Path:
    """Write record.json, report.html and report.md; gives the page's path. Raises BadInput."""
    jsonfile.dump(record, folder / "record.json")
    jsonfile.write(folder / "report.md", markdown.render([record], clauses.index()))
    jsonfile.write(folder / "report.html", html.render([record], clauses.index()))
    return folder / "report.html"


def write_profile(record: Profile, folder: Path) -> Path:
    """Write profile.json, profile.html and profile.md; gives the page's path. Raises BadInput."""
    leave(folder / "profile.json", profilefile.dumps(record))
    leave(folder / "profile.md", profiletext.markdown(record))
    leave(folder / "profile.html", profilehtml.render(record))
    return folder / "profile.html"


def write_matrix(record: Matrix, folder: Path) -> Path:
    """Write mutants.json, mutants.html and mutants.md; gives the page's path. Raises BadInput."""
    leave(folder / "mutants.json", jsonfile.lines(record))
    leave(folder / "mutants.md", matrixtext.markdown(record))
    leave(folder / "mutants.html", matrixhtml.render(record))
    return folder / "mutants.html"


def shown(records: Sequence[Record], form: str) -> str:
    """Records as text: table, json or markdown."""
    if form == "json":
        return "".join(jsonfile.dumps(r) for r in records)
    render = markdown.render if form == "markdown" else text.render
    return render(records, clauses.index())


def leave(path: Path, content: str) -> None:
    """Write one more file of the report. Raises BadInput."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise BadInput(f"{path.parent}: cannot be made ({e.strerror})") from None
    jsonfile.write(path, content)
