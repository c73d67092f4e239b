"""The mutation matrix as one HTML page."""

from __future__ import annotations

from kvreports import page
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
        head=numbers.HEAD,
        whole=numbers.whole(record),
        wrong=[(result(m), m) for m in numbers.wrong(record)],
        classes=[*real, *anomalies],
        modules=numbers.modules(record),
        controls=controls,
        equivalents=numbers.equivalents(record),
        sources=SOURCES,
        mark=mark,
        address=address,
    )


def mark(m: MutantRecord, source: str) -> tuple[str, str]:
    """The cell of a source and a mutant: its kind, and the word in it."""
    return {True: ("hit", "found"), False: ("miss", "not found"), None: ("none", "not tried")}[
        m.sources.get(source)
    ]


def address(m: MutantRecord) -> str:
    """The address where the bug was seen, if it can be linked to."""
    return m.link if m.link.startswith("https://") else ""
