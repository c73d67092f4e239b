"""Who owns arrays is not seen on a wire, which copies them, but where the process overwrites the engine's."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from kvadapters.reference import Reference
from kvconform.runner.verdict.observation import COPIED
from kvconform.runner.verdict.tally import Tally
from kvconform.runner.verdict.verdict import Evidence, Verdict, verdict_on
from kvconform.worker.client import Worker, python_worker
from kvspec.contract import Description, description
from kvspec.reading.clauses import index
from kvspec.registry import KINDS, opened
from support.running.command_line import kvconform

WHOLE = description(Reference().describe())
OWNED = [clause.id for clause in index().values() if "intact" in clause.seen_in]
"""The clauses of which a breach shows in an array that is not the cache's."""


def verdict(clause: str, adapter: Description) -> Verdict:
    tally = Tally(exercised={clause: Counter(example=1)}, with_rows={clause}, oracles={clause: "reference"})
    return verdict_on(Evidence(index()[clause], tally, adapter, partial=False))


@pytest.mark.parametrize("clause", OWNED)
def test_on_the_wire_a_clause_on_ownership_is_partly_observed(clause: str) -> None:
    assert verdict(clause, WHOLE).name == "PASS"
    name, reason = verdict(clause, replace(WHOLE, overwrites=False))
    assert (name, COPIED in reason) == ("PARTLY_OBSERVED", True)


def test_every_kind_has_such_a_clause() -> None:
    assert {opened(kind).ownership for kind in KINDS} <= set(OWNED)


def test_other_clauses_are_observed_on_the_wire() -> None:
    assert verdict("RING-1", replace(WHOLE, overwrites=False)).name == "PASS"


def test_a_worker_says_whether_it_overwrites_arrays(tmp_path: Path) -> None:
    with Worker(python_worker("reference")) as worker:
        assert worker.describe().takes == ["run", "scribble"]
    silent = tmp_path / "silent.py"
    silent.write_text(
        "import json, sys\n"
        "asked = json.loads(sys.stdin.buffer.readline())\n"
        "about = {'name': 'silent', 'chapters': {'ring': 'visible'}}\n"
        "print(json.dumps({'id': asked['id'], 'result': 'ok', 'describe': about}), flush=True)\n"
    )
    with Worker([sys.executable, str(silent)]) as worker:
        assert worker.describe().takes == []


@pytest.mark.parametrize("named", [["reference"], ["--", *python_worker("reference")]], ids=["name", "process"])
def test_an_adapter_in_python_is_observed(named: list[str]) -> None:
    """On one kind: what a process overwrites does not depend on it."""
    done = kvconform("run", "--clause", "CACHE-4", "--chapter", "growing", "--quick", "--processes", "1", *named)
    assert done.returncode == 0 and "PARTLY_OBSERVED" not in done.stdout, done.stdout
