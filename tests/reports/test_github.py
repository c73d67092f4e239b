"""Annotations of GitHub: one for each bug, and no text of a record ends or forges one."""

from __future__ import annotations

import pytest

from kvconform import cli
from kvconform.runner.record import github
from kvreports.run.bugs import bugs
from reports.drawing.test_drawings import ring_steps
from support import fakes
from support.samples.record_samples import NAMED, changed, clause, failing, failure, passing, record


def test_a_passing_run_has_none() -> None:
    assert github.lines(passing()) == []


def test_each_bug_is_an_error_the_first_one_first() -> None:
    told = github.lines(failing())
    assert told[0].startswith("::error title=GROW-5 FAIL%3A like TRIM-99/RowsComeBack::slot 2, head 1 holds row c")
    assert "%0Agrowing step=4: append 4; rewind 2; append 1%0Abreaks GROW-5%0Akvconform explain GROW-5" in told[0]
    assert all(line.startswith("::error title=") and "\n" not in line for line in told)
    assert len(told) == sum(bug.verdict != "XFAIL" for bug in bugs(failing()))
    assert not any("GROW-4" in line for line in told), "a known deviation is no error"


def test_clauses_of_one_bug_stand_beneath_one_error() -> None:
    shown = [failure("FAIL", names, ring_steps(), names, words=names) for names in ("RING-5", "RING-1 RING-5")]
    shown = [one | {"diagnosis": NAMED} for one in shown]
    seen = record("a", [clause("RING-1", "FAIL"), clause("RING-5", "FAIL")], shown)
    (told,) = github.lines(seen)
    assert "breaks RING-5, RING-1%0A" in told or "breaks RING-1, RING-5%0A" in told
    shown[1] = shown[1] | {"diagnosis": []}
    assert len(github.lines(record("a", [clause("RING-1", "FAIL"), clause("RING-5", "FAIL")], shown))) == 2


def test_a_run_that_is_no_answer_has_one() -> None:
    (told,) = github.lines(changed(passing(), exit_status=3, problems=["harness: it died"]))
    assert told.startswith("::error title=The harness failed::") and "it died" in told


def test_there_are_no_more_than_github_shows() -> None:
    names = ["RING-1", "RING-5", "RING-10", "RING-17", "GROW-1", "GROW-2", "GROW-4", "GROW-5", "MASK-2", "MASK-5"]
    names += ["SNAP-1", "SNAP-3"]
    said = [clause(n, "CRASH" if i % 2 else "HANG", f"it died {n}") for i, n in enumerate(names)]
    many = [
        failure("FAIL", n, ring_steps(), n, cause="alias" if i % 2 else "wrong row") for i, n in enumerate(names)
    ]
    assert len(github.lines(record("x", said, many))) <= github.MOST
    for i, c in enumerate(said):
        c["chapter"] = f"chapter {i}"
    told = github.lines(record("x", said, many))
    assert len(told) == github.MOST and told[-1] == "::error title=3 more::see the report"


def test_what_an_adapter_says_forges_no_line() -> None:
    evil = "a\n::set-env name=X::y\r\x1b[2J, 100%: b"
    (told,) = github.lines(
        record("x", [clause("RING-5", "FAIL")], [failure("FAIL", "RING-5", ring_steps(), evil, words=evil)])
    )
    assert "\n" not in told and "\r" not in told and "\x1b" not in told and "100%25" in told


@pytest.mark.parametrize("by", ["option", "environment", "nobody"])
def test_a_run_writes_them_where_it_is_asked_to(
    by: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", fakes.environment()["PYTHONPATH"])
    monkeypatch.setenv("GITHUB_ACTIONS", "true" if by == "environment" else "")
    words = ["run", "support.fakes.adapters:AcceptsAnyRewind", "--clause", "CACHE-7", "--quick", "-q"]
    assert cli.main([*words, *["--annotations"] * (by == "option")]) == 1
    out, err = capsys.readouterr()
    assert ("::error title=CACHE-7 FAIL" in err) == (by != "nobody") and "::" not in out
