"""SARIF: one result for each bug, by its first clause, with what shows it; in the form that its schema requires."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from kvconform.runner.record import sarif
from kvreports.drawing.text import draw
from kvreports.run import replay
from kvreports.run.bugs import bugs
from kvspec.records.run import BROKEN, Record
from reports.drawing.test_drawings import ring_steps
from support.readers.html_page import hostile
from support.samples.record_samples import NAMED, changed, clause, failing, failure, partial, passing, record

TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
URI = {"type": "object", "required": ["uri"], "properties": {"uri": {"type": "string", "pattern": r"^[\w./-]+$"}}}
LOCATION = {
    "required": ["physicalLocation"],
    "properties": {
        "physicalLocation": {
            "required": ["artifactLocation", "region"],
            "properties": {"artifactLocation": URI, "region": {"properties": {"startLine": {"minimum": 1}}}},
        }
    },
}
RESULT = {
    "required": ["ruleId", "ruleIndex", "level", "message", "locations"],
    "properties": {
        "message": TEXT,
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": {"enum": ["none", "note", "warning", "error"]},
        "locations": {"type": "array", "minItems": 1, "items": LOCATION},
        "partialFingerprints": {"additionalProperties": {"type": "string"}},
        "suppressions": {
            "items": {"required": ["kind"], "properties": {"kind": {"enum": ["inSource", "external"]}}}
        },
    },
}
RULE: dict[str, Any] = {
    "required": ["id"],
    "properties": {"id": {"type": "string"}, "fullDescription": TEXT, "help": TEXT},
}
RULE["properties"]["properties"] = {"properties": {"tags": {"type": "array", "uniqueItems": True}}}
NOTIFICATION = {"required": ["message"], "properties": {"message": TEXT}}
RUN = {
    "required": ["tool", "results"],
    "properties": {
        "tool": {
            "required": ["driver"],
            "properties": {"driver": {"required": ["name"], "properties": {"rules": {"items": RULE}}}},
        },
        "invocations": {
            "items": {
                "required": ["executionSuccessful"],
                "properties": {
                    "executionSuccessful": {"type": "boolean"},
                    "exitCode": {"type": "integer"},
                    "toolExecutionNotifications": {"items": NOTIFICATION},
                },
            }
        },
        "results": {"type": "array", "items": RESULT},
    },
}
LOG = {
    "required": ["version", "runs"],
    "properties": {"version": {"const": "2.1.0"}, "runs": {"type": "array", "items": RUN}},
}
"""What SARIF 2.1.0 requires of the parts that we write, and what a service needs to show a result: its place."""

BROKEN_CLAUSE = record("a", [clause("RING-5", "FAIL", "its example failed")])


def run_of(seen: Record) -> dict[str, Any]:
    document = json.loads(sarif.dumps(seen))
    jsonschema.validate(document, LOG)
    (run,) = document["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [rules[result["ruleIndex"]] for result in run["results"]] == [r["ruleId"] for r in run["results"]]
    assert len(set(rules)) == len(rules)
    return dict(run)


@pytest.mark.parametrize("seen", [passing(), failing(), partial(), hostile(failing()), BROKEN_CLAUSE])
def test_it_has_what_the_form_requires(seen: Record) -> None:
    run = run_of(seen)
    broken = {c.id for c in seen.clauses if c.verdict in (*BROKEN, "XFAIL")}
    told = {id_ for result in run["results"] for id_ in result.get("properties", {}).get("clauses", [])}
    assert {result["ruleId"] for result in run["results"]} | told >= broken
    assert bool(run["results"]) == bool(broken)


def test_a_result_has_the_clause_the_message_the_drawing_and_the_command() -> None:
    seen, run = failing(), run_of(failing())
    first, result = bugs(seen)[0].failures[0], run["results"][0]
    assert (result["ruleId"], result["level"]) == ("GROW-5", "error")
    for words in (first.message, first.words, draw(first.steps), replay.command(first, seen), "kvconform explain"):
        assert words in result["message"]["text"]
    rule = run["tool"]["driver"]["rules"][0]
    assert rule["fullDescription"]["text"] == next(c.text for c in seen.clauses if c.id == "GROW-5")


def test_a_known_deviation_is_suppressed_and_nothing_else_is() -> None:
    known = failure("FAIL", "RING-1", ring_steps(), "m", known={"RING-1": "clipped"})
    new = failure("FAIL", "RING-5", ring_steps(), "n")
    seen = record("a", [clause("RING-1", "XFAIL", "known: clipped"), clause("RING-5", "FAIL", "n")], [known, new])
    told = {r["ruleId"]: (r["level"], r["suppressions"]) for r in run_of(seen)["results"]}
    assert told["RING-1"] == ("note", [{"kind": "external", "justification": "clipped"}])
    assert told["RING-5"] == ("error", [])


def shown(clauses: str, words: str, **more: Any) -> Any:
    return failure("FAIL", clauses, ring_steps(), f"differs on {words}", words=words) | more


def test_each_bug_is_one_result_with_all_its_clauses_and_traces() -> None:
    like = [shown("RING-5 RING-1", "one", diagnosis=NAMED), shown("RING-1", "two", diagnosis=NAMED)]
    seen = record(
        "a", [clause(i, "FAIL") for i in ("RING-1", "RING-5", "GROW-1")], [*like, shown("GROW-1", "three")]
    )
    results = run_of(seen)["results"]
    assert sorted(sorted(r["properties"]["clauses"]) for r in results) == [["GROW-1"], ["RING-1", "RING-5"]]
    (both,) = [r for r in results if len(r["properties"]["clauses"]) == 2]
    assert both["properties"]["bug"] == f"like {NAMED[0]['id']}"
    assert "breaks RING-5, RING-1" in both["message"]["text"] or "breaks RING-1, RING-5" in both["message"]["text"]
    assert "differs on one" in both["message"]["text"] and "differs on two" in both["message"]["text"]
    assert (len(both["locations"]), len(both["relatedLocations"])) == (1, 1)


def test_a_fingerprint_is_of_the_clause_and_the_bug_alone() -> None:
    def prints(message: str, **more: Any) -> Any:
        seen = record("a", [clause("RING-5", "FAIL")], [failure("FAIL", "RING-5", ring_steps(), message, **more)])
        return run_of(seen)["results"][0]["partialFingerprints"]

    alike = [prints("m", words="append 1"), prints("n", words="append 1"), prints("m", words="append 2")]
    assert alike[0] == alike[1] == alike[2] != prints("m", words="append 1", cause="alias")


def test_a_run_that_is_no_answer_says_so() -> None:
    (told,) = run_of(changed(passing(), exit_status=3, problems=["harness: it died"]))["invocations"]
    assert not told["executionSuccessful"] and told["exitCode"] == 3
    assert "it died" in told["toolExecutionNotifications"][0]["message"]["text"]
    assert run_of(passing())["invocations"][0]["executionSuccessful"]
    assert run_of(failing())["invocations"][0]["executionSuccessful"], "a broken clause is an answer"
