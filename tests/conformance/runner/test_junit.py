"""What CI systems read of a run: a case for each bug, one for each clause that holds."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from kvconform.runner.record import junit
from kvreports.drawing.text import draw
from kvreports.run import replay
from kvreports.run.bugs import bugs
from kvspec.records.run import BROKEN, Record
from reports.drawing.test_drawings import ring_steps
from support.samples.record_samples import NAMED, changed, clause, failing, failure, partial, passing, record


def suite_of(seen: Record) -> Element:
    (suite,) = ElementTree.fromstring(junit.dumps(seen))
    counted = {"tests": list(suite), "failures": suite.iter("failure"), "errors": suite.iter("error")}
    for name, cases in (counted | {"skipped": suite.iter("skipped")}).items():
        assert suite.get(name) == str(len(list(cases))), name
    names = [(case.get("classname"), case.get("name")) for case in suite]
    assert len(set(names)) == len(names), "a CI system knows a case by its name"
    return suite


def tags(suite: Element) -> dict[str, str]:
    """The first word of each case's name, and what it has: failure, skipped, error or nothing."""
    return {str(case.get("name")).partition(":")[0]: "".join(child.tag for child in case) for case in suite}


def broken(clauses: str, words: str, **more: Any) -> Any:
    return failure("FAIL", clauses, ring_steps(), f"differs on {words}", words=words) | more


def test_a_run_that_passes_has_a_case_for_each_clause_that_it_claims() -> None:
    seen = changed(passing(), clauses=[clause("GROW-1"), clause("RING-1", "NOT_CLAIMED"), clause("RING-5")])
    suite = suite_of(seen)
    assert tags(suite) == {"GROW-1": "", "RING-5": ""} and suite.get("time") == "41.700"
    assert [case.get("classname") for case in suite] == ["kvconform.growing", "kvconform.ring"]


def test_a_bug_is_one_case_with_its_clauses_its_drawing_and_the_command() -> None:
    seen = failing()
    suite, first = suite_of(seen), seen.failures[0]
    (told,) = suite[0]
    assert suite[0].get("name") == "GROW-5: like TRIM-99/RowsComeBack"
    assert (told.tag, told.get("message")) == ("failure", f"FAIL: {first.message}")
    for words in ("breaks GROW-5", first.words, draw(first.steps), replay.command(first, seen)):
        assert words in str(told.text)
    assert tags(suite)["GROW-4"] == "skipped" and tags(suite)["RING-10"] == "skipped"
    assert {"SNAP-1", "SNAP-3"}.isdisjoint(tags(suite)), "nobody claims them"


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (broken("GROW-5", "two", diagnosis=NAMED), 1),
        (broken("GROW-5", "two"), 1),
        (broken("GROW-5 RING-1", "two"), 2),
        (broken("GROW-5", "two", diagnosis=[]), 2),
        (broken("GROW-5", "two", known={"GROW-5": "clipped"}), 2),
        (broken("GROW-5", "two", diagnosis=NAMED[1:]), 2),
    ],
    ids=["diagnosed alike", "not diagnosed", "of another clause", "like no known bug", "known", "like another bug"],
)
def test_failures_are_one_bug_where_the_cache_behaves_like_one(second: Any, expected: int) -> None:
    first = broken("GROW-5", "one", diagnosis=NAMED)
    seen = record("a", [clause("GROW-5", "FAIL"), clause("RING-1", "FAIL")], [first, second])
    shown = [bug for bug in bugs(seen) if bug.failures]
    assert len(shown) == expected
    assert sorted(f.words for bug in shown for f in bug.failures) == ["one", "two"]


def test_what_was_not_diagnosed_is_one_bug_for_each_cause_in_each_chapter() -> None:
    told = [("RING-1", "a", "wrong row"), ("RING-5", "b", "wrong row"), ("RING-5", "c", "alias")]
    shown = [broken(id_, words, cause=cause) for id_, words, cause in [*told, ("GROW-1", "d", "wrong row")]]
    seen = record("a", [clause(i, "FAIL") for i in ("RING-1", "RING-5", "GROW-1")], shown)
    found = {(bug.chapter, bug.title): sorted(f.words for f in bug.failures) for bug in bugs(seen)}
    assert found == {
        ("ring", "wrong row"): ["a", "b"],
        ("ring", "alias"): ["c"],
        ("growing", "wrong row"): ["d"],
    }


@pytest.mark.parametrize("seen", [passing(), failing(), partial()])
def test_each_broken_clause_is_told_by_a_bug(seen: Record) -> None:
    told = {id_ for bug in bugs(seen) for id_ in bug.clauses}
    assert {c.id for c in seen.clauses if c.verdict in (*BROKEN, "XFAIL")} <= told


def test_many_traces_of_one_bug_are_counted() -> None:
    shown = [broken("RING-5", f"trace {n}") for n in range(8)]
    (told,) = suite_of(record("a", [clause("RING-5", "FAIL")], shown))[0]
    assert "trace 4" in str(told.text) and "trace 5" not in str(told.text) and "and 3 more" in str(told.text)


@pytest.mark.parametrize("status", [1, 2, 3, 4])
def test_no_run_that_fails_is_green(status: int) -> None:
    (case,) = [c for c in suite_of(changed(passing(), exit_status=status)) if len(c)]
    assert (case[0].tag, case.get("name")) == ("error", "the run as a whole")


def test_a_breach_of_no_clause_is_a_failure_and_an_error_of_the_harness_an_error() -> None:
    seen = record(
        "a", [clause("GROW-1", "HARNESS_ERROR", "it died")], problems=["adapter: it describes itself anew"]
    )
    assert tags(suite_of(changed(seen, exit_status=1))) == {"GROW-1": "error", "adapter": "failure"}


def test_what_xml_cannot_hold_is_written_as_question_marks() -> None:
    seen = record(
        "a", [clause("RING-5", "FAIL")], [failure("FAIL", "RING-5", ring_steps(), "slot \x1b\x00 <row> & lost")]
    )
    (told,) = suite_of(seen)[0]
    assert told.get("message") == "FAIL: slot ?? <row> & lost"
