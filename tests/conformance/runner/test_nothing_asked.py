"""*Conforms* needs every claimed clause exercised in what it is about; an honest small claim still conforms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvconform.checks.check import judge
from kvconform.checks.suite import selected
from kvconform.judge import trial
from kvconform.oracle.reference import CitingReference
from kvconform.runner.record.record import NOT_EXERCISED
from kvconform.runner.settings import Settings
from kvconform.runner.under_test import opened
from kvconform.runner.verdict.observation import shown_with_rows
from kvspec.contract import description
from kvspec.notation import from_sentence
from kvspec.reading.clauses import index
from support import fakes
from support.fakes import limited
from support.running.command_line import kvconform
from support.running.local_adapter import LocalAdapter
from support.slow import one_in

FAKES = "support.fakes.limited"


def run(name: str, *how: str) -> tuple[int, dict[str, Any]]:
    """The exit status and the record of a quick run."""
    done = kvconform("run", f"{FAKES}:{name}", "--quick", "--format", "json", *(how or ("--processes", "1")))
    assert done.stdout, done.stderr[-500:]
    return done.returncode, json.loads(done.stdout)


def verdicts(record: dict[str, Any]) -> dict[str, str]:
    return {clause["id"]: clause["verdict"] for clause in record["clauses"]}


def harness_problems(record: dict[str, Any]) -> list[str]:
    return [p for p in record["problems"] if p.startswith("harness: ")]


def test_an_adapter_that_takes_no_row_does_not_conform(tmp_path: Path) -> None:
    about_rows, others = [f"RING-{n}" for n in (1, 2, 3, 5, 7, 17)], ["CACHE-3", "CACHE-7"]
    asked = [word for clause in (*about_rows, *others) for word in ("--clause", clause)]
    done = kvconform("run", f"{FAKES}:NoSlots", "--quick", *asked, "--processes", "1", "--report", tmp_path)
    record = json.loads((tmp_path / "record.json").read_text())
    assert "Conforms" not in done.stdout
    status, told, found = done.returncode, harness_problems(record), verdicts(record)
    assert (status, len(told), NOT_EXERCISED in told[0]) == (3, 1, True)
    assert {found[clause] for clause in about_rows} == {"NOT_RUN"}
    assert found["CACHE-7"] == found["CACHE-3"] == "PASS", "a rewind beyond the offset is refused, rows or none"


@pytest.mark.slow  # of some clauses, above
def test_nor_does_it_in_all_it_claims() -> None:
    done = kvconform("run", f"{FAKES}:NoSlots", "--quick", "--quiet", "--processes", "1")
    assert "Conforms" not in done.stdout and (done.returncode == 3 or "Does not conform" in done.stdout)


@pytest.mark.parametrize("name", ["SaysLessLater", "LimitsLater", "RefusesLater"])
def test_processes_that_describe_themselves_otherwise_do_not_conform(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(limited.MARK, str(tmp_path / "mark"))
    status, record = run(name, "--processes", "2")
    (told,) = [p for p in record["problems"] if "otherwise in another process" in p]
    assert (status, told.startswith("adapter: ")) == (1, True)


@pytest.mark.parametrize("name", one_in(8, limited.LIMITS))
def test_a_small_claim_that_is_honest_is_exercised_whole(name: str) -> None:
    """It may take more than it claims, which the check of honesty says; nothing is left without a trace."""
    status, record = run(name)
    assert (harness_problems(record), status == 3) == ([], False)
    assert {*verdicts(record).values()} <= {"PASS", "NOT_CLAIMED"}
    reasons = [c["reason"] for c in record["clauses"] if c["verdict"] == "NOT_CLAIMED"]
    assert all(reasons) and "left out" in record["selection"]


def test_what_is_refused_and_what_has_no_rows_exercises_no_clause_about_rows() -> None:
    adapter = description({"name": "any", "chapters": {"ring": "storage", "growing": "storage"}})
    for words, rows in (
        ("ring window=2: append 0; rewind 3", False),
        ("ring window=2: append 1 k_dim=3", False),
        ("ring window=2: append 0; append 1; rewind 7", True),
        ("ring window=2: run 3 {append 1}", True),
    ):
        seen = trial.run(from_sentence(words), CitingReference(), adapter)
        assert (seen.took_rows, bool(seen.with_rows())) == (rows, rows), words
    assert shown_with_rows(index()["RING-1"]) and not shown_with_rows(index()["CACHE-7"])


def test_a_run_that_opens_a_cache_leaves_open_how_much_it_takes() -> None:
    """Its capacity is not seen, and `chunk` goes by that: to take the rows and to refuse them is as right."""
    for adapter in (limited.NoSlots, limited.CapacityOfTwo):
        for words in (
            "run 1 {open B; B: append 1}; B: append 1; B: append 1",
            "run 1 {open B; B: append 1; B: rewind 1}; append 1",
        ):
            seen = LocalAdapter(adapter()).run(from_sentence(f"ring window=2: {words}"))
            assert not seen.failed and len(seen.steps) == len(seen.trace.ops), (adapter, words)
    for words in ("append 2", "run 1 {append 2}"):
        assert LocalAdapter(limited.TakesWhatItRefuses()).run(from_sentence(f"ring window=2: {words}")).failed


def test_a_check_that_judges_nothing_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", fakes.environment()["PYTHONPATH"])
    settings = Settings(f"{FAKES}:AllLimits", traces=5)
    under_test = opened(settings)
    with under_test.worker:
        check = next(c for c in selected(settings, under_test.adapter) if c.id == "ring/example/CACHE-13.3")
        result = judge(under_test, check)
    assert (result.difference, result.tally.judged) == (
        "",
        0,
    ) and "within what the adapter claims" in result.unjudged
