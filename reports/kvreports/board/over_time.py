"""Releases of engines side by side as Markdown, for the repository."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvreports.board.versions import Compared, Row
from kvreports.markdown import cited, literal, table

EXPLAINED = """\
Each row is a bug that has a script of its own, each column a release, the oldest first. A script uses the engine
and its arrays alone; a release has the bug if the script shows it. *Mended*: it is not there, and an earlier
release has it. *Cannot open*: the release has no such class or method; that is no pass. *Not judged*: the script
ended in another error. A release is installed with all else as it was a day after it came."""

JUDGED = """\
A quick run of the suite judges each cache of some releases, through the adapter of the newest release. The packages
that the suite itself needs are those of today. A cell counts bugs. *Cannot open*: the adapter asks for a name that
the release does not have."""


def render(found: Sequence[Compared], spec: str) -> str:
    """The page: a table for each engine."""
    parts = ["# Over time", EXPLAINED]
    for one in found:
        told = [f"- {literal(line)}" for line in one.installed]
        parts += [f"## {literal(one.record.engine)}", f"{literal(one.headline)}.", _table(one, spec)]
        parts += [
            f"Judged on {literal(one.record.made)}, by spec {literal(one.record.spec)}, with:",
            "\n".join(told),
            *_judged(one),
        ]
    return "\n\n".join(parts) + "\n"


def _judged(one: Compared) -> Iterator[str]:
    """What the suite found in each cache of each release; nothing where none was judged."""
    if not one.judged:
        return
    yield f"### {literal(one.record.engine)}, judged by the suite"
    yield JUDGED
    head = ["cache", *map(literal, one.releases_judged)]
    yield table(head, [[literal(name), *(literal(cell.word) for cell in cells)] for name, cells in one.judged])
    for title, lines in one.parts.items():
        yield f"{title}:"
        yield "\n".join(f"- {literal(line)}" for line in lines)


def _table(one: Compared, spec: str) -> str:
    head = ["bug", "sort", "clauses", *(literal(r.version) for r in one.record.releases), "over these releases"]
    return table(head, [_row(row, spec) for row in one.rows])


def _row(row: Row, spec: str) -> list[str]:
    said = f"[{literal(row.bug.says)}]({row.script})" if row.script else literal(row.bug.says)
    told = f"{said} ([draft]({row.draft}))" if row.draft else said
    cells = (literal(cell.word) for cell in row.cells)
    return [told, literal(row.bug.sort), cited(row.clauses, spec), *cells, literal(row.story)]
