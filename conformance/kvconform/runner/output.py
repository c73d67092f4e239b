"""What a run leaves behind: the record and its renderings, in a folder or on standard output."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kvreports.mutants import html as mutants_html
from kvreports.mutants import text as mutants_text
from kvreports.profile import file as profile_file
from kvreports.profile import html as profile_html
from kvreports.profile import text as profile_text
from kvreports.run import file as run_file
from kvreports.run import html as run_html
from kvreports.run import markdown
from kvreports.run import text as run_text
from kvspec.errors import BadInput
from kvspec.reading import clauses
from kvspec.records.mutants import Matrix
from kvspec.records.profile import Profile
from kvspec.records.run import Record


def write(record: Record, folder: Path) -> Path:
    """Write record.json, report.html and report.md; gives the page's path. Raises BadInput."""
    run_file.dump(record, folder / "record.json")
    run_file.write(folder / "report.md", markdown.render([record], clauses.index()))
    run_file.write(folder / "report.html", run_html.render([record], clauses.index()))
    return folder / "report.html"


def write_profile(record: Profile, folder: Path) -> Path:
    """Write profile.json, profile.html and profile.md; gives the page's path. Raises BadInput."""
    leave(folder / "profile.json", profile_file.dumps(record))
    leave(folder / "profile.md", profile_text.markdown(record))
    leave(folder / "profile.html", profile_html.render(record))
    return folder / "profile.html"


def write_matrix(record: Matrix, folder: Path) -> Path:
    """Write mutants.json, mutants.html and mutants.md; gives the page's path. Raises BadInput."""
    leave(folder / "mutants.json", run_file.lines(record))
    leave(folder / "mutants.md", mutants_text.markdown(record))
    leave(folder / "mutants.html", mutants_html.render(record))
    return folder / "mutants.html"


def shown(records: Sequence[Record], form: str) -> str:
    """Records as text: table, json or markdown."""
    if form == "json":
        return "".join(run_file.dumps(r) for r in records)
    render = markdown.render if form == "markdown" else run_text.render
    return render(records, clauses.index())


def leave(path: Path, content: str) -> None:
    """Write one more file of the report. Raises BadInput."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise BadInput(f"{path.parent}: cannot be made ({e.strerror})") from None
    run_file.write(path, content)
