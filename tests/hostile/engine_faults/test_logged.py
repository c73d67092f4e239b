"""Faults of the scheduler are seen in the log of its steps, and blamed on the clause that they break; where the
scheduler decides rightly, and something else is wrong, the log is clean."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hostile.engine_faults import CONTROLS, FAULTS
from hostile.engine_faults.logged import shown
from kvconform.steps.verdict import judged
from kvspec.steps.clauses import index
from serving_engine.step_log import StepLog
from support.serving import Life

QUICK = {
    "prefix/whole-prompt": "STEP-6",
    "prefix/stale-key": "STEP-9",
    "prefix/one-row-more": "STEP-5",
    "hybrid/hit-asks-the-last-block": "STEP-7",
    "page/no-copy-on-write": "STEP-16",
    "asynchronous/given-back-before-the-batch": "STEP-17",
}
"""A page that two get, a stale hit, a window group that is not asked: those that every run of the tests plants."""


@pytest.mark.must("the clause that is broken")
@pytest.mark.parametrize("fault", QUICK)
def test_shown(fault: str, tmp_path: Path) -> None:
    found = shown(FAULTS[fault], tmp_path / "steps.jsonl")
    assert found.clause == QUICK[fault] == FAULTS[fault].log, found


@pytest.mark.must("wrong answers in the lives of the log, whether it shows the fault or not")
@pytest.mark.parametrize("fault", ["prefix/stale-key", "batch/positions-from-zero"])
def test_answers_of_the_same_lives_are_judged(fault: str, tmp_path: Path) -> None:
    found = shown(FAULTS[fault], tmp_path / "steps.jsonl", lives=2)
    assert 0 < found.answers <= found.asked and found.clause == FAULTS[fault].log
    assert not shown(CONTROLS["controls/as-it-is"], tmp_path / "steps.jsonl", lives=1).answers


AHEAD = {"ahead": True, "drafts": 0, "host_blocks": 12}


@pytest.mark.must("a clean log, in which something is reused")
@pytest.mark.parametrize(("fixed", "also"), [({}, "rejected"), (AHEAD, "loads")])
def test_the_right_engine_has_a_clean_log(tmp_path: Path, fixed: dict[str, Any], also: str) -> None:
    log = tmp_path / "steps.jsonl"
    life = Life(5, **fixed)
    with StepLog(life.engine, log):
        assert life.lived(30)[1] == ""
    seen = judged(log)
    assert (seen.broken, seen.exit_status) == (None, 0)
    assert all(seen.counts[name] for name in ("hits", "evictions", "preemptions", "forks", "copies", also))


@pytest.mark.must("the clause that is broken, or none")
@pytest.mark.hostile
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in QUICK])
def test_each_is_shown_or_not(fault: str, tmp_path: Path) -> None:
    found = shown(FAULTS[fault], tmp_path / "steps.jsonl")
    print(fault, *FAULTS[fault].clauses, "|", found.clause or "nothing", found.requests, found.words)
    assert found.clause == FAULTS[fault].log, found


@pytest.mark.must("a clause of STEP, or nothing")
def test_the_table_names_clauses() -> None:
    logs = Counter(fault.log for fault in FAULTS.values())
    assert logs.keys() - {""} <= index().keys()
    assert sum(logs.values()) - logs[""] >= 50 and len(logs) >= 14
