"""The mutation matrix as one HTML page."""

from __future__ import annotations

from kvreports import matrix
from kvreports.html import environment, policy, source
from kvreports.safe import cleaned, shortened
from kvspec.mutants_record import SOURCES, Matrix, MutantRecord, result

STYLE, SCRIPT = ("page.css", "mutants.css"), ("theme.js",)


def render(record: Matrix) -> str:
    """The page."""
    record = cleaned(record)
    argued = [m for m in record["mutants"] if m["equivalent"]]
    return (
        environment()
        .get_template("mutants.html.j2")
        .render(
            record=record,
            style=source(*STYLE),
            script=source(*SCRIPT),
            policy=policy(STYLE, SCRIPT),
            headline=matrix.headline(record),
            head=matrix.HEAD,
            whole=matrix.whole(record),
            wrong=[(result(m), m) for g in matrix.whole(record) for m in g.wrong],
            classes=[
                *matrix.grouped(matrix.real(record), lambda m: m["class"]),
                *matrix.grouped(matrix.anomalies(record), lambda m: f"anomaly: {m['class']}"),
            ],
            modules=matrix.grouped(matrix.apart(record, "systematic"), matrix.module),
            ends=[(result(m), m) for which in ("control", "fake") for m in matrix.apart(record, which)],
            arguments=matrix.grouped(argued, lambda m: m["equivalent"]),
            sources=SOURCES,
            mark=mark,
            address=address,
            clip=shortened,
        )
    )


def mark(m: MutantRecord, source: str) -> tuple[str, str]:
    """How a source did on a mutant: the cell's kind, and the word for it."""
    found = m["sources"].get(source)
    return {True: ("hit", "found"), False: ("miss", "not found"), None: ("none", "not tried")}[found]


def address(m: MutantRecord) -> str:
    """Where the bug was seen, if that is an address that can be linked to."""
    return m["link"] if m["link"].startswith("https://") else ""
