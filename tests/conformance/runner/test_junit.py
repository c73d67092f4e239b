"""What CI systems read of a run."""

from __future__ import annotations

from xml.etree import ElementTree

from kvconform.runner.record import junit
from kvconform.runner.verdict.result import CheckResult
from support.samples.record_samples import failing

RESULTS = (
    CheckResult("growing/example/GROW-1.1", seconds=0.25),
    CheckResult(
        "ring/cover/window=3", difference="FAIL RING-5: slot 0 holds \x1b\x00 <row>\n  append", seconds=1.5
    ),
    CheckResult("ring/law/RING-31/ring", error="Traceback\n  File x\nValueError: & lost\n"),
)


def test_each_check_is_a_test_case() -> None:
    root = ElementTree.fromstring(junit.dumps(RESULTS))
    (suite,) = root
    assert {k: suite.get(k) for k in ("tests", "failures", "errors", "time")} == {
        "tests": "3",
        "failures": "1",
        "errors": "1",
        "time": "1.750",
    }
    cases = list(suite)
    assert [c.get("name") for c in cases] == [r.check for r in RESULTS]
    assert [c.get("classname") for c in cases] == ["kvconform.growing", "kvconform.ring", "kvconform.ring"]
    assert [[child.tag for child in c] for c in cases] == [[], ["failure"], ["error"]]
    assert cases[1][0].get("message") == "FAIL RING-5: slot 0 holds ?? <row>"
    assert cases[2][0].get("message") == "ValueError: & lost"


def test_a_run_of_nothing_is_an_empty_suite() -> None:
    (suite,) = ElementTree.fromstring(junit.dumps([]))
    assert (suite.get("tests"), list(suite)) == ("0", [])


def test_what_to_look_at_first_comes_first() -> None:
    seen = failing()
    results = [CheckResult("growing/example/GROW-1.1"), CheckResult("other", difference="x")]
    for n, failed in enumerate(seen.failures):
        failed.test = f"check {n}"
        results.insert(0, CheckResult(failed.test, difference=failed.message))
    (suite,) = ElementTree.fromstring(junit.dumps(results, seen))
    assert [case.get("name") for case in suite.findall("testcase")] == [
        *("check 0", "check 1", "check 2", "other", "growing/example/GROW-1.1")
    ]
    (first,) = suite.iter("property")
    assert (first.get("name"), first.get("value")) == ("look first at", f"GROW-5: {seen.failures[0].message}")
