"""Releases of engines side by side as Markdown, for the repository."""

from __future__ import annotations

from collections.abc import Sequence

from kvreports.board.versions import Compared, Row
from kvreports.markdown import cited, literal, table

EXPLAINED = """\
Each row is a bug that has a script of its own, each column a release, the oldest first. A script uses the engine
and its arrays alone; a release has the bug if the script shows it. *Mended*: it is not there, and an earlier
release has it. *Cannot open*: the release has no such class or method; that is no pass. *Not judged*: the script
ended in another error. Bugs were found by judging one release whole, so that those of older releases alone are here
only where they were found by reading what changed. A release is installed with all else as it was a day after it
came."""


def render(found: Sequence[Compared], spec: str) -> str:
    """The page: a table for each engine."""
    parts = ["# Over time", EXPLAINED]
    for one in found:
        told = [f"- {literal(line)}" for line in one.installed]
        parts += [f"## {literal(one.record.engine)}", f"{literal(one.headline)}.", _table(one, spec)]
        parts += [
            f"Judged on {literal(one.record.made)}, by spec {literal(one.record.spec)}, with:",
            "\n".join(told),
        ]
    return "\n\n".join(parts) + "\n"


def _table(one: Compared, spec: str) -> str:
    head = ["bug", "sort", "clauses", *(literal(r.version) for r in one.record.releases), "over these releases"]
    return table(head, [_row(row, spec) for row in one.rows])


def _row(row: Row, spec: str) -> list[str]:
    said = f"[{literal(row.bug.says)}]({row.script})" if row.script else literal(row.bug.says)
    told = f"{said} ([draft]({row.draft}))" if row.draft else said
    cells = (literal(cell.word) for cell in row.cells)
    return [told, literal(row.bug.sort), cited(row.clauses, spec), *cells, literal(row.story)]
