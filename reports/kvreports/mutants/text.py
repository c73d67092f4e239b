"""The mutation matrix for a terminal, as Markdown and as JSON."""

from __future__ import annotations

from typing import Any

from tabulate import tabulate

from kvreports.mutants import numbers as mutants_numbers
from kvreports.run.markdown import literal
from kvreports.safe_text import line
from kvspec.records.mutants import SOURCES, Matrix, MutantRecord, result

HEAD = ("mutant", "result", *SOURCES, "by", "operations", "right clause", "seconds")
MARKS = {True: "x", False: "-", None: ""}


def render(record: Matrix) -> str:
    """For a terminal: every mutant a line, then the groups, then one sentence."""
    rows = tabulate([row(m) for m in record.mutants], HEAD, disable_numparse=True)
    groups = tabulate([g.row() for g in mutants_numbers.whole(record)], mutants_numbers.HEAD, disable_numparse=True)
    return f"{rows}\n\n{groups}\n\n{mutants_numbers.headline(record)}\n"


def row(m: MutantRecord) -> list[str]:
    """A mutant under `HEAD`."""
    sources = [MARKS[m.sources.get(s)] for s in SOURCES]
    right = {True: "yes", False: "no", None: ""}[m.right]
    blamed = " ".join(m.by[:3])
    return [
        line(m.id)[:100],
        result(m),
        *sources,
        blamed,
        str(m.operations or ""),
        right,
        f"{m.seconds:.3f}",
    ]


def markdown(record: Matrix) -> str:
    """As Markdown: groups, every real bug, every part's systematic faults, every argument."""
    parts = ["# The mutation matrix", literal(mutants_numbers.headline(record), 400)]
    parts += ["## In all", _table(mutants_numbers.HEAD, [g.row() for g in mutants_numbers.whole(record)])]
    wrong = [m for g in mutants_numbers.whole(record) for m in g.wrong]
    if wrong:
        parts += ["## Not as it must be", *(f"- {result(m)}: {literal(m.id, 200)}" for m in wrong)]
    parts += ["## Real bugs", _table(_BUGS, [_bug(m) for m in mutants_numbers.real(record)])]
    parts += ["## Anomalies", _table(_BUGS, [_bug(m) for m in mutants_numbers.anomalies(record)])]
    modules = mutants_numbers.grouped(mutants_numbers.apart(record, "systematic"), mutants_numbers.module)
    parts += ["## Systematic faults", _table(mutants_numbers.HEAD, [g.row() for g in modules])]
    parts += ["## Argued to be no faults", *_arguments(record)]
    return "\n\n".join(parts) + "\n"


_BUGS = ("bug", "what it does", "found by", "clauses", "operations", "shortest trace")


def _bug(m: MutantRecord) -> list[str]:
    found = ", ".join(s for s, hit in m.sources.items() if hit)
    link = f"[{literal(m.id)}]({m.link})" if m.link.startswith("https://") else literal(m.id)
    return [link, literal(m.says, 200), found, " ".join(m.by), str(m.operations), literal(m.trace, 200)]


def _arguments(record: Matrix) -> list[str]:
    argued = [m for m in record.mutants if m.equivalent]
    return [
        f"- {literal(g.name, 300)}\n" + "\n".join(f"  - {literal(m.id, 200)}" for m in g.rows)
        for g in mutants_numbers.grouped(argued, lambda m: m.equivalent)
    ]


def _table(head: Any, rows: list[list[str]]) -> str:
    return tabulate(rows, head, tablefmt="github", disable_numparse=True)
