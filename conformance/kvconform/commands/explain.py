"""`kvconform explain CACHE-1`: prints a clause, its reason, and its worked examples, run on the reference."""

from __future__ import annotations

import textwrap
from argparse import Namespace

from tabulate import tabulate

from kvconform.judge import steps as drawn_steps
from kvconform.judge import trial
from kvconform.oracle.reference import CitingReference, claims
from kvconform.runner.settings import require_known
from kvreports import terminal
from kvreports.drawing.text import draw as drawn
from kvspec.notation import sentence
from kvspec.reading.clauses import Clause, index
from kvspec.reading.moved_clauses import moved, now
from kvspec.registry import LETTERS
from kvspec.serving import clauses as serving
from kvspec.steps import clauses as steps


def main(options: Namespace) -> int:
    """Print a clause, or the clauses of a chapter. Raises BadInput for an id that is neither."""
    name = options.clause.upper()
    if (beside := {"SERVE": _serving, "STEP": _steps}.get(name.partition("-")[0])) is not None:
        beside(name)
        return 0
    if name in LETTERS:
        for clause in (c for c in index().values() if c.chapter == LETTERS[name]):
            print(_wrapped(f"{clause.id} ({clause.level}) {clause.text}", "    "))
        return 0
    if name in moved():
        print(_wrapped(f"{name} is {now(name)} now: a general clause says it for every kind.") + "\n")
    name = now(name)
    require_known("clause" if "-" in name else "chapter", name, tuple(index() if "-" in name else LETTERS))
    _explain(index()[name])
    return 0


def _explain(clause: Clause) -> None:
    print(
        f"{clause.id}, level {clause.level}, {' and '.join(clause.applies)}; seen in {', '.join(clause.seen_in)}\n"
    )
    print(_wrapped(clause.text))
    if clause.reason:
        print("\n" + _wrapped(f"Why: {clause.reason}"))
    for example in clause.examples:
        seen = trial.run(example.trace, CitingReference(), claims())
        print(f"\nExample {example.id}: {sentence(example.trace)}\n")
        print(drawn(drawn_steps.steps(seen, clause.seen_in)))


def _serving(name: str) -> None:
    """Explain a clause on requests, or list them all."""
    if name == "SERVE":
        for each in serving.index().values():
            print(_wrapped(f"{each.id} {each.text}", "    "))
        return
    require_known("clause", name, tuple(serving.index()))
    clause = serving.index()[name]
    needs = "" if clause.needs == "any" else f", of engines that have this: {clause.needs}"
    print(f"{clause.id}{needs}\n\n{_wrapped(clause.text)}")
    if clause.reason:
        print("\n" + _wrapped(f"Why: {clause.reason}"))
    for example in clause.examples:
        window = f", in a layer of window {example.window}" if example.window else ""
        print(f"\nExample {example.id}{window}\n")
        rows = [(row.step, row.tokens, row.sees) for row in example.rows]
        print(tabulate(rows, ("do", "tokens > answer", "its last query sees"), tablefmt="plain"))


def _steps(name: str) -> None:
    """Explain a clause on logs of steps, or list them all."""
    if name == "STEP":
        for each in steps.index().values():
            print(_wrapped(f"{each.id} {each.text}", "    "))
        return
    require_known("clause", name, tuple(steps.index()))
    clause = steps.index()[name]
    print(f"{clause.id}, of logs that have this: {', '.join(clause.needs)}\n\n{_wrapped(clause.text)}")
    if clause.reason:
        print("\n" + _wrapped(f"Why: {clause.reason}"))
    for example in clause.examples:
        print(f"\nExample {example.id}\n\n{example.log}\n{_wrapped(example.says)}")


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, terminal.width(), subsequent_indent=indent, break_long_words=False)
