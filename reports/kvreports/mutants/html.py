"""The mutation matrix as one HTML page."""

from __future__ import annotations

from kvreports.mutants import numbers as mutants_numbers
from kvreports.run.html import environment, policy, source
from kvreports.safe_text import cleaned, shortened
from kvspec.records.mutants import SOURCES, Matrix, MutantRecord, result

STYLE, SCRIPT = ("page.css", "mutants.css"), ("theme.js",)


def render(record: Matrix) -> str:
    """The page."""
    record = cleaned(record)
    argued = [m for m in record.mutants if m.equivalent]
    return (
        environment()
        .get_template("mutants.html.j2")
        .render(
            record=record,
            style=source(*STYLE),
            script=source(*SCRIPT),
            policy=policy(STYLE, SCRIPT),
            headline=mutants_numbers.headline(record),
            head=mutants_numbers.HEAD,
            whole=mutants_numbers.whole(record),
            wrong=[(result(m), m) for g in mutants_numbers.whole(record) for m in g.wrong],
            classes=[
                *mutants_numbers.grouped(mutants_numbers.real(record), lambda m: m.bug_class),
                *mutants_numbers.grouped(mutants_numbers.anomalies(record), lambda m: f"anomaly: {m.bug_class}"),
            ],
            modules=mutants_numbers.grouped(mutants_numbers.apart(record, "systematic"), mutants_numbers.module),
            ends=[(result(m), m) for which in ("control", "fake") for m in mutants_numbers.apart(record, which)],
            arguments=mutants_numbers.grouped(argued, lambda m: m.equivalent),
            sources=SOURCES,
            mark=mark,
            address=address,
            clip=shortened,
        )
    )


def mark(m: MutantRecord, source: str) -> tuple[str, str]:
    """How a source did on a mutant: the cell's kind, and the word for it."""
    found = m.sources.get(source)
    return {True: ("hit", "found"), False: ("miss", "not found"), None: ("none", "not tried")}[found]


def address(m: MutantRecord) -> str:
    """Where the bug was seen, if that is an address that can be linked to."""
    return m.link if m.link.startswith("https://") else ""
