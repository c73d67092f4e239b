"""Python adapters that mean harm: lies are told apart from quirks, and every death has its verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hostile import adapters
from kvconform.judge import trial
from kvconform.judge.trial_result import TrialResult
from kvconform.worker.client import Worker, python_worker
from kvconform.worker.remote_session import RemoteSession
from kvspec.contract import Description
from kvspec.notation import from_sentence
from support import fakes
from support.running import command_line, judging

TRACE = "growing kv_heads=2: append 2; append 1; view; view; scribble; view; append 1"

LIES: dict[str, tuple[str, str]] = {
    "AgreesWithAll": (TRACE, "FAIL"),
    "OffsetAgreesWithAll": (TRACE, "FAIL"),
    "OffsetIsAnObject": (TRACE, "FAIL"),
    "Strided": (TRACE, "PASS"),
    "ReadOnly": (TRACE, "PASS"),
    "Masked": (TRACE, "FAIL"),
    "BigEndian": (TRACE, "FAIL"),
    "Objects": (TRACE, "FAIL"),
    "Lists": (TRACE, "FAIL"),
    "Generates": (TRACE, "FAIL"),
    "KeysAlone": (TRACE, "FAIL"),
    "Swapped": (TRACE, "FAIL"),
    "Scalars": (TRACE, "FAIL"),
    "Live": (TRACE, "FAIL"),
    "Keeps": (TRACE, "FAIL"),
    "ChangesWhenRead": (TRACE, "FAIL"),
    "TiresAtRow100": ("growing: append 99; append 1; append 1", "FAIL"),
    "WrongInHead1": (TRACE, "FAIL"),
    "WrongFromTheSecondCacheOn": ("growing: append 1; open B; B: append 1", "FAIL"),
    "ZeroRowsAreARow": ("growing: append 1; append 0", "FAIL"),
    "RaisesInLengths": (TRACE, "FAIL"),
    "LengthsOfOne": (TRACE, "FAIL"),
    "RaisesTheUnspeakable": (TRACE, "FAIL"),
    "RaisesAtLength": (TRACE, "FAIL"),
    "RaisesCommands": (TRACE, "FAIL"),
    "RaisesHalfLetters": (TRACE, "FAIL"),
    "StopsIteration": (TRACE, "FAIL"),
    "LacksMemory": (TRACE, "FAIL"),
    "RefusesWithoutWords": (TRACE, "FAIL"),
    "RefusesUnderANumber": (TRACE, "FAIL"),
    "RefusesUnderAList": (TRACE, "PROTOCOL"),
    "Recurses": (TRACE, "FAIL"),
    "MaybeRewinds": ("growing: append 1; ask 5", "FAIL"),
    "Mocks": (TRACE, "FAIL"),
    "RaisesAtOpen": (TRACE, "FAIL"),
}
"""On which trace each is tried here, through the bytes of the wire, and what the trace ends with."""


def name(adapter: str) -> str:
    """What is told of an adapter: its docstring."""
    return str(getattr(adapters, adapter).__doc__).splitlines()[0].rstrip(".")


def judged(words: str, worker: Worker, about: Description) -> TrialResult:
    trace = from_sentence(words)
    return trial.run(trace, RemoteSession(worker, trial.observables(trace, about, "storage")), about)


@pytest.mark.parametrize(("adapter", "trace", "must"), [(a, *of) for a, of in LIES.items()], ids=map(name, LIES))
def test_it(adapter: str, trace: str, must: str) -> None:
    worker: Any = judging.Wired(f"hostile.adapters:{adapter}")
    about = worker.describe()
    seen = judged(trace, worker, about)
    assert seen.verdict == must
    assert all(len(d.message) < 5000 for d in seen.differences)


DEATHS: dict[str, str] = {
    "DiesAtOpen": "CRASH",
    "HangsAtOpen": "HANG",
    "EatsAtOpen": "OOM",
    "ClosesEverything": "CRASH",
    "Forks": "PROTOCOL",
    "AnswersForAnother": "PROTOCOL",
    "StopsItself": "HANG",
    "Aborts": "CRASH",
    "OverflowsTheStack": "CRASH",
    "RunsOutOfTime": "CRASH",
    "RaisesTheInterrupt": "CRASH",
    "RaisesTheExit": "CRASH",
    "LeavesAThread": "PASS",
    "PatchesNumpy": "FAIL",
    "GoesElsewhere": "PASS",
    "Hooks": "PASS",
}
"""Those that need a process of their own."""


@pytest.mark.hostile
@pytest.mark.parametrize(("adapter", "must"), DEATHS.items(), ids=map(name, DEATHS))
def test_in_its_process_it(adapter: str, must: str, tmp_path: Path) -> None:
    argv = python_worker(f"hostile.adapters:{adapter}")
    env = fakes.environment() | {"KVCONFORM_TEST": str(tmp_path)}
    with Worker(argv, env=env, deadline=1.0, start_deadline=30.0, memory_limit=250 << 20) as worker:
        about = worker.describe()
        worker.start_deadline = 6.0
        seen = judged(TRACE, worker, about)
        assert seen.verdict == must
    assert not judging.workers_of(str(tmp_path))


@pytest.mark.hostile
@pytest.mark.must("CRASH, status 1")
def test_a_clause_of_an_adapter_that_dies_at_open() -> None:
    """The failure is of opening a cache; the example of the clause that was asked for ended early in it."""
    status, record, _ = command_line.run("hostile.adapters:DiesAtOpen", "--clause", "GROW-1", "--quick")
    assert status == 1 and judging.verdicts(record) == {"GROW-1": "NOT_RUN"}
    assert {f.verdict for f in record.failures} == {"CRASH"} and record.clauses[0].reason


@pytest.mark.hostile
@pytest.mark.must("status 1, nothing commands")
def test_a_terminal_that_is_told_of_a_message_that_it_would_obey() -> None:
    done = command_line.kvconform("replay", "growing: append 1", "--adapter", "hostile.adapters:RaisesCommands")
    assert done.returncode == 1 and "owned" in done.stdout and "\nPASS GROW-1" not in done.stdout
