"""The mutation matrix as Markdown: groups, every real bug, every part's systematic faults, every equivalent."""

from __future__ import annotations

from kvreports.markdown import cited, literal, table
from kvreports.mutants import numbers
from kvspec.records.mutants import Matrix, MutantRecord, result

_BUGS = ("bug", "what it does", "found by", "clauses", "operations", "shortest trace")


def render(record: Matrix, spec: str = "") -> str:
    """The whole matrix. With `spec`, the address of the chapters' folder, the ids of clauses are links."""
    parts = ["# The mutation matrix", literal(numbers.headline(record), 400)]
    parts += ["## In all", table(numbers.HEAD, [g.row() for g in numbers.whole(record)])]
    wrong = [f"- {result(m)}: {literal(m.id, 200)}" for m in numbers.wrong(record)]
    parts += ["## Wrong results", *wrong] if wrong else []
    parts += ["## Real bugs", table(_BUGS, [_bug(m, spec) for m in numbers.real(record)])]
    parts += ["## Anomalies", table(_BUGS, [_bug(m, spec) for m in numbers.anomalies(record)])]
    parts += ["## Systematic faults", table(numbers.HEAD, [g.row() for g in numbers.modules(record)])]
    parts += ["## Equivalent mutants", *map(_equivalents, numbers.equivalents(record))]
    return "\n\n".join(parts) + "\n"


def _bug(m: MutantRecord, spec: str) -> list[str]:
    sources = ", ".join(source for source, found in m.sources.items() if found)
    link = f"[{literal(m.id)}]({m.link})" if m.link.startswith("https://") else literal(m.id)
    return [link, literal(m.says, 200), sources, cited(m.by, spec), str(m.operations), literal(m.trace, 200)]


def _equivalents(group: numbers.Group) -> str:
    """The reason, and the mutants that it applies to."""
    return "\n".join([f"- {literal(group.name, 300)}", *(f"  - {literal(m.id, 200)}" for m in group.rows)])
