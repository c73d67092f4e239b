"""What a run tells while it judges, and in which terminal."""

from __future__ import annotations

import io
import os
import re
import sys
import time
from typing import Any

import pytest

from kvconform import message
from kvconform.checks.suite import suite
from kvconform.runner.progress import Progress, tell_device
from kvconform.runner.verdict.tally import CheckResult
from kvreports import terminal
from kvspec.contract import Description
from support.samples.record_samples import failing

ADAPTER = Description("a", {})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_basic_chapters_are_judged_first() -> None:
    for kind in ("example", "cover"):
        chapters = dict.fromkeys(c.chapter for c in suite().values() if f"/{kind}/" in c.id)
        assert list(chapters)[:4] == ["growing", "ring", "bounded", "mask"] and len(chapters) > 10


def test_a_line_tells_time_gone_time_left_and_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    now, out = [100.0], Terminal()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sys, "stderr", out)
    progress = Progress(ADAPTER)
    progress.expect(["a/example/one", "a/example/two", "a/example/three", "a/example/four"])
    progress.ended(CheckResult("a/example/one", operations=6))
    assert out.getvalue().endswith("[  1/4] 0:00: a/example/one, 6 operations")
    now[0] += 65
    progress.ended(CheckResult("a/example/two", difference="it differs", operations=6))
    assert out.getvalue().endswith("[  2/4] 1:05, about 1:05 left, 1 failed: a/example/two, 12 operations")


def test_no_time_left_is_told_before_a_third_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    now, out = [0.0], Terminal()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sys, "stderr", out)
    progress = Progress(ADAPTER)
    progress.expect([f"a/example/{i}" for i in range(6)])
    now[0] = 60.0
    progress.ended(CheckResult("a/example/0", operations=6))
    assert "left" not in out.getvalue()
    progress.ended(CheckResult("a/example/1", operations=6))
    assert out.getvalue().endswith("left: a/example/1, 12 operations")


@pytest.mark.parametrize(("columns", "shown"), [(40, 39), (80, 79), (300, 100)])
def test_a_line_that_is_overwritten_fits_its_terminal(
    columns: int, shown: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = Terminal()
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setattr(out, "fileno", lambda: 2)
    monkeypatch.setattr(os, "get_terminal_size", lambda descriptor: os.terminal_size((columns, 24)))
    message.LiveLine(1.0).show("x" * 500)
    assert out.getvalue() == message.REWRITE + "x" * shown


def test_the_time_left_counts_a_check_by_the_source_of_its_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    now, out = [0.0], Terminal()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sys, "stderr", out)
    progress = Progress(ADAPTER)
    progress.expect([*(f"a/example/{i}" for i in range(100)), "a/cover/small", "b/cover/small"])
    for i in range(100):
        progress.ended(CheckResult(f"a/example/{i}", operations=6))
    now[0] = 5.0
    progress.ended(CheckResult("a/cover/small", operations=2400))
    assert re.search(r"\[101/102\] 0:05, about 0:04 left: a/cover/small, 3000 operations$", out.getvalue())


def test_the_time_left_is_told_by_the_operations_that_checks_had_in_this_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A quick run has few covers: after some of them their share of the time is known."""
    now, out = [0.0], Terminal()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sys, "stderr", out)
    progress = Progress(ADAPTER)
    progress.expect([f"a/cover/{i}" for i in range(6)])
    now[0] = 60.0
    for i in range(3):
        assert "left" not in out.getvalue()
        progress.ended(CheckResult(f"a/cover/{i}", operations=20))
    assert out.getvalue().endswith("[  3/6] 1:00, about 1:00 left: a/cover/2, 60 operations")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({}, ""),
        ({"device": "a simulator"}, "kvconform: device: a simulator\n"),
        (
            {"device": "a simulator", "details": {"why": "there is no other", "faster": "a GPU", "cores": 2}},
            "kvconform: device: a simulator (there is no other)\nkvconform: faster: a GPU\n",
        ),
    ],
    ids=["no device", "no reason", "a reason"],
)
def test_the_device_is_told_first(said: dict[str, Any], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    tell_device(Description("a", {}, **said), "faster")
    assert capsys.readouterr().err == told


def test_a_failure_is_told_as_it_is_found_and_a_clause_once(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    progress, result = Progress(ADAPTER), CheckResult("one", difference="x")
    result.tally.failures += failing().failures[:1]
    progress.expect(["one", "two"])
    for _ in range(2):
        progress.ended(result)
    assert out.getvalue().count("FAIL GROW-5 in one: slot 2, head 1 holds row c") == 1 and progress.failed == 2


def test_a_quiet_run_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    out, result = Terminal(), CheckResult("one", difference="x")
    monkeypatch.setattr(sys, "stderr", out)
    result.tally.failures += failing().failures[:1]
    Progress(ADAPTER, quiet=True).ended(result)
    assert out.getvalue() == ""


@pytest.mark.parametrize(
    ("environment", "stream", "wanted"),
    [
        ({}, Terminal(), True),
        ({}, io.StringIO(), False),
        ({"NO_COLOR": "1"}, Terminal(), False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, Terminal(), False),
        ({"FORCE_COLOR": "1"}, io.StringIO(), True),
        ({"TERM": "dumb"}, Terminal(), False),
    ],
)
def test_colours_are_for_terminals_and_for_who_wants_them(environment: Any, stream: Any, wanted: bool) -> None:
    assert terminal.wanted(stream, environment) == wanted


@pytest.mark.parametrize(
    ("plain", "painted"),
    [
        ("a: Does not conform (x)", "a: <Does not conform> (x)"),
        ("!  3  append 1   offset 3 [found 5]   [b]  (x)", "<!  3>  append 1   offset 3 <[found 5]>   <[b]>  (x)"),
        ("FAIL RING-1 in x", "<FAIL> RING-1 in x"),
        ("NOT_RUN, FAILING, read [16] [a b]", "NOT_RUN, FAILING, read <[16]> [a b]"),
    ],
)
def test_what_is_broken_is_red(plain: str, painted: str) -> None:
    assert terminal.paint(plain).replace(terminal.RED, "<").replace(terminal.OFF, ">") == painted


def test_what_an_adapter_says_commands_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Terminal()
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    terminal.write(out, "FAIL: \x1b[8m hidden")
    assert out.getvalue().count("\x1b") == 2 and "\x1b[8m" not in out.getvalue()
