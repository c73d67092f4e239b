"""The mutation matrix as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence

from kvreports import inline_markdown, page
from kvreports.mutants import numbers
from kvreports.safe_text import cleaned
from kvspec.records.mutants import SOURCES, Matrix, MutantRecord, result

STYLES, SCRIPTS = ("page.css", "mutants.css"), ("theme.js",)


def render(record: Matrix) -> str:
    """The page."""
    record = cleaned(record)
    real = numbers.grouped(numbers.real(record), lambda m: m.bug_class)
    anomalies = numbers.grouped(numbers.anomalies(record), lambda m: f"anomaly: {m.bug_class}")
    controls = [(result(m), m) for name in ("control", "fake") for m in numbers.of_class(record, name)]
    return page.render(
        "mutants.html.j2",
        STYLES,
        SCRIPTS,
        record=record,
        headline=numbers.headline(record),
        whole=columns(numbers.whole(record)),
        wrong=[(result(m), m) for m in numbers.wrong(record)],
        classes=[*real, *anomalies],
        modules=columns(numbers.modules(record)),
        controls=controls,
        equivalents=numbers.equivalents(record),
        told=told,
        address=address,
        said=inline_markdown.html,
    )


def columns(groups: Sequence[numbers.Group]) -> tuple[list[str], list[list[str]]]:
    """The heads and the rows of groups, without the columns that are empty in all of them: sources never tried."""
    rows = [[str(cell) for cell in group.row()] for group in groups]
    kept = [i for i in range(len(numbers.HEAD)) if not i or any(row[i] for row in rows)]
    return [numbers.HEAD[i] for i in kept], [[row[i] for i in kept] for row in rows]


def told(m: MutantRecord) -> list[tuple[str, str]]:
    """Which sources found a mutant, and which that were tried did not."""
    kinds = {True: ("hit", ""), False: ("miss", "not by ")}
    tried = [(found, [s for s in SOURCES if m.sources.get(s) is found]) for found in kinds]
    return [(kinds[found][0], kinds[found][1] + ", ".join(names)) for found, names in tried if names]


def address(m: MutantRecord) -> str:
    """The address where the bug was seen, if it can be linked to."""
    return m.link if m.link.startswith("https://") else ""
