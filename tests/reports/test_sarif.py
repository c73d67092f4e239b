"""SARIF: one result for each failure, by its clause, with what shows it; in the form that its schema requires."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from kvconform.runner.record import sarif
from kvreports.drawing.text import draw
from kvreports.run import findings, replay
from kvspec.records.run import BROKEN, Record
from reports.drawing.test_drawings import ring_steps
from reports.run.test_html import hostile
from support.samples.record_samples import changed, clause, failing, failure, partial, passing, record

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
    first, result = findings.failures(seen)[0][0], run["results"][0]
    assert (result["ruleId"], result["level"]) == ("GROW-5", "error")
    for words in (first.message, first.words, draw(first.steps), replay.command(first, seen), "kvconform explain"):
        assert words in result["message"]["text"]
    rule = run["tool"]["driver"]["rules"][0]
    assert rule["fullDescription"]["text"] == next(c.text for c in seen.clauses if c.id == "GROW-5")
    assert len(run["results"]) >= len(seen.failures)


def test_a_known_deviation_is_suppressed_and_nothing_else_is() -> None:
    known = failure("FAIL", "RING-1", ring_steps(), "m", known={"RING-1": "clipped"})
    new = failure("FAIL", "RING-5", ring_steps(), "n")
    seen = record("a", [clause("RING-1", "XFAIL", "known: clipped"), clause("RING-5", "FAIL", "n")], [known, new])
    told = {r["ruleId"]: (r["level"], r["suppressions"]) for r in run_of(seen)["results"]}
    assert told["RING-1"] == ("note", [{"kind": "external", "justification": "clipped"}])
    assert told["RING-5"] == ("error", [])


def test_a_fingerprint_is_of_the_clause_and_the_trace_alone() -> None:
    def prints(message: str, words: str) -> Any:
        seen = record(
            "a", [clause("RING-5", "FAIL")], [failure("FAIL", "RING-5", ring_steps(), message, words=words)]
        )
        return run_of(seen)["results"][0]["partialFingerprints"]

    assert prints("m", "append 1") == prints("n", "append 1") != prints("m", "append 2")


def test_a_run_that_is_no_answer_says_so() -> None:
    (told,) = run_of(changed(passing(), exit_status=3, problems=["harness: it died"]))["invocations"]
    assert not told["executionSuccessful"] and told["exitCode"] == 3
    assert "it died" in told["toolExecutionNotifications"][0]["message"]["text"]
    assert run_of(passing())["invocations"][0]["executionSuccessful"]
    assert run_of(failing())["invocations"][0]["executionSuccessful"], "a broken clause is an answer"
