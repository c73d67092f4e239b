"""What broke, as SARIF 2.1.0, for services that show results of analyses beside the code.

The form: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from kvconform.version import __version__
from kvreports.drawing.text import draw
from kvreports.run import findings, replay
from kvreports.run.standing import verdict
from kvreports.safe_text import cleaned, shortened
from kvspec.records.run import ClauseRecord, Failure, Record

NAME = "record.sarif"
"""The file in a report's folder."""

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

FOLDER = "REPORT"
"""What addresses of files are relative to: the folder of the report."""

LONGEST = 10_000
"""Characters of a text."""

NONE = "no-clause"
"""The rule of a failure that breaks no clause."""


def dumps(record: Record) -> str:
    """One result for each failure, the one to look at first at the front; one for each other clause that broke."""
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(record)]}
    return json.dumps(cleaned(document), indent=1, ensure_ascii=False) + "\n"


def _run(record: Record) -> dict[str, Any]:
    results = [*_results(record)]
    named = list(dict.fromkeys(result["ruleId"] for result in results))
    for result in results:
        result["ruleIndex"] = named.index(result["ruleId"])
    clauses = {clause.id: clause for clause in record.clauses}
    rules = [_rule(id_, clauses.get(id_)) for id_ in named]
    return {
        "tool": {"driver": {"name": "kvconform", "version": __version__, "rules": rules}},
        "originalUriBaseIds": {FOLDER: {"description": _text("the folder of this report")}},
        "invocations": [_invocation(record)],
        "results": results,
    }


def _invocation(record: Record) -> dict[str, Any]:
    """How the run ended: exit status 1 is an answer, 2 and more are none."""
    told = [{"level": "error", "message": _text(problem)} for problem in record.problems[:20]]
    return {
        "executionSuccessful": record.exit_status < 2 and not record.partial,
        "exitCode": record.exit_status,
        "toolExecutionNotifications": told,
    }


def _rule(id_: str, clause: ClauseRecord | None) -> dict[str, Any]:
    if clause is None:
        return {"id": id_}
    tags = {"tags": sorted({clause.chapter, clause.level})}
    return {"id": id_, "fullDescription": _text(clause.text), "help": _text(_explain(id_)), "properties": tags}


def _results(record: Record) -> Iterator[dict[str, Any]]:
    told = set[str]()
    for failure, ids in findings.failures(record):
        told |= {*ids}
        yield _failed(failure, ids or failure.clauses or [NONE], record)
    for clause in findings.suspects(record):
        if clause.id not in told:
            yield _result(clause.id, clause.verdict, clause.reason, "record.json", [clause.reason])


def _failed(failure: Failure, ids: list[str], record: Record) -> dict[str, Any]:
    """A failure: the message, the trace, its drawing, and the command that replays it."""
    command = replay.command(failure, record)
    texts = [
        failure.message,
        failure.words,
        draw(failure.steps),
        command,
        _explain(ids[0]) if ids != [NONE] else "",
    ]
    known = failure.known.get(ids[0], "known") if failure.expected else ""
    result = _result(ids[0], verdict(failure), known, replay.file(failure, record), texts)
    return result | {"properties": {"clauses": ids, "replay": command, "cause": failure.cause}}


def _result(id_: str, of: str, known: str, file: str, texts: list[str]) -> dict[str, Any]:
    """One result. A known deviation is suppressed, with its reason. The fingerprint outlives a new message."""
    place = {"artifactLocation": {"uri": file, "uriBaseId": FOLDER}, "region": {"startLine": 1}}
    print_ = hashlib.sha256("\n".join([id_, *texts[1:2]]).encode("utf-8", "replace")).hexdigest()
    expected = of == "XFAIL"
    return {
        "ruleId": id_,
        "level": "note" if expected else "error",
        "message": _text("\n\n".join(filter(None, [f"{id_}: {of}", *texts]))),
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"clauseAndTrace/v1": print_},
        "suppressions": [{"kind": "external", "justification": known}] if expected else [],
    }


def _explain(id_: str) -> str:
    return f"kvconform explain {id_}"


def _text(text: str) -> dict[str, str]:
    return {"text": shortened(text, LONGEST) or "no reason given"}
