"""The bugs of a run, as SARIF 2.1.0, for services that show results of analyses beside the code.

The form: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from kvconform.version import __version__
from kvreports.run import replay
from kvreports.run.bugs import SHOWN, Bug, bugs, told
from kvreports.safe_text import cleaned, shortened
from kvspec.records.run import ClauseRecord, Record

NAME = "record.sarif"
"""The file in a report's folder."""

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

FOLDER = "REPORT"
"""What addresses of files are relative to: the folder of the report."""

LONGEST = 10_000
"""Characters of a text."""

NONE = "no-clause"
"""The rule of a bug that breaks no clause."""


def dumps(record: Record) -> str:
    """One result for each bug, the one to look at first at the front. Its rule is its first clause."""
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(record)]}
    return json.dumps(cleaned(document), indent=1, ensure_ascii=False) + "\n"


def _run(record: Record) -> dict[str, Any]:
    results = [_result(bug, record) for bug in bugs(record)]
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


def _result(bug: Bug, record: Record) -> dict[str, Any]:
    """One result. A known deviation is suppressed, with its reason. The fingerprint outlives a new message
    and a new trace."""
    rule, expected = next(iter(bug.clauses), NONE), bug.verdict == "XFAIL"
    title = f"{rule}: {bug.verdict}: {bug.title}"
    seen = [] if bug.failures else [bug.reason]
    print_ = hashlib.sha256(f"{rule}\n{bug.title}".encode("utf-8", "replace")).hexdigest()
    return {
        "ruleId": rule,
        "level": "note" if expected else "error",
        "message": _text("\n\n".join(filter(None, [title, *seen, *told(bug, record)]))),
        "locations": [_place(file) for file in _files(bug, record)[:1] or ["record.json"]],
        "relatedLocations": [_place(file) for file in _files(bug, record)[1:]],
        "partialFingerprints": {"clauseAndBug/v1": print_},
        "suppressions": [{"kind": "external", "justification": bug.reason}] if expected else [],
        "properties": {"clauses": [*bug.clauses], "bug": bug.title},
    }


def _files(bug: Bug, record: Record) -> list[str]:
    """The traces that show a bug, the shortest first."""
    return [replay.file(failure, record) for failure in bug.failures[:SHOWN]]


def _place(file: str) -> dict[str, Any]:
    return {
        "physicalLocation": {"artifactLocation": {"uri": file, "uriBaseId": FOLDER}, "region": {"startLine": 1}}
    }


def _explain(id_: str) -> str:
    return f"kvconform explain {id_}"


def _text(text: str) -> dict[str, str]:
    return {"text": shortened(text, LONGEST) or "no reason given"}
