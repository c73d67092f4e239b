"""Rules of a scheduler's bookkeeping, each broken by a patch: after how many random lives its log shows it, and by
how many events. `python -m tools.teeth ENGINE [--write]`, run in `tests/`, where the engine is installed.

With `--write` the table goes to its page. Ends with status 1 if a rule is not found by its clauses in 50 lives.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from tools.lives import ENGINES, life_of

PAGE = Path(__file__).parents[2] / "reports" / "published" / "RULES.md"
WANTED = 8
"""Events that should be enough to show a broken rule."""


class Row(NamedTuple):
    """What the lives of a broken scheduler showed. `lives` is 0 if none did, `events` is 0 where no log was cut;
    `right` says that it was by a clause of the rule."""

    rule: str
    groups: str
    lives: int
    clause: str
    events: int
    right: bool

    def cells(self) -> str:
        """Give the row of the table."""
        found = (str(self.lives), self.clause, str(self.events or "-")) if self.lives else ("not found", "", "")
        return f"| {' | '.join((self.rule, self.groups, *found))} |"


def tried(engine: str, log: Path) -> list[Row]:
    """Break each rule of an engine, and live until its log shows it."""
    import pytest  # the sessions of other tools do not install it

    life = life_of(engine)
    rules = import_module("adapters.serving.rules")
    made = []
    for rule, (shape, clauses, fixed) in import_module(f"adapters.serving.patched_{engine}").RULES.items():
        with pytest.MonkeyPatch.context() as patch:
            rule(patch)
            lives, verdict = rules.first_broken(life, log, shape, **fixed)
        made.append(row(rule, shape, clauses, lives, verdict))
        print(made[-1].cells(), flush=True)
    return made


def row(rule: Any, shape: str, clauses: Sequence[str], lives: int, verdict: Any) -> Row:
    """Say what the lives of one broken rule showed."""
    words = " ".join(str(rule.__doc__).split()).removesuffix(".")
    if verdict is None:
        return Row(words, shape, 0, "", 0, right=False)
    clause = verdict.broken.clause
    return Row(words, shape, lives, clause, len(verdict.shortest), clause in clauses)


def section(engine: str, rows: Sequence[Row]) -> str:
    """Give the part of the page that is about an engine."""
    found, cut = [r for r in rows if r.right], [r for r in rows if r.right and r.events]
    most = max((r.lives for r in found), default=0)
    return (
        f"## {engine}\n\n{len(found)} of {len(rows)} rules are found, after at most {most} lives of 150 steps; "
        f"{sum(r.events <= WANTED for r in cut)} of {len(cut)} logs that are cut have at most {WANTED} events.\n\n"
        "| broken rule | groups | lives | clause | events |\n|---|---|---|---|---|\n"
        + "".join(f"{r.cells()}\n" for r in rows)
    )


def with_section(page: str, engine: str, text: str) -> str:
    """Put the part of an engine in the place of its old one, or behind the others."""
    parts = re.split(r"(?m)^(?=## )", page)
    kept = {part.split("\n")[0]: part.rstrip() + "\n" for part in parts[1:]} | {f"## {engine}": text}
    return "\n".join((parts[0].rstrip() + "\n", *(kept[name] for name in sorted(kept))))


def main(arguments: Sequence[str]) -> int:
    """Try all rules of an engine."""
    reader = argparse.ArgumentParser(prog="python -m tools.teeth")
    reader.add_argument("engine", choices=ENGINES)
    reader.add_argument("--write", action="store_true", help="write the page")
    how = reader.parse_args(arguments)
    rows = tried(how.engine, Path(tempfile.mkdtemp()) / "steps.jsonl")
    text = section(how.engine, rows)
    print(text)
    if how.write:
        PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8"), how.engine, text), encoding="utf-8")
    return int(not all(r.right for r in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
