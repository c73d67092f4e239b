"""A run as JUnit XML, for CI systems that show tests: a case for each bug, and one for each clause that holds."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from kvconform.runner.record.redact import published
from kvreports.difference.judged import UNCLAIMED
from kvreports.run.bugs import Bug, bugs, told
from kvreports.run.standing import standing
from kvspec.records.run import BROKEN, ClauseRecord, Record

TAGS = ("failure", "error", "skipped")


def dumps(record: Record) -> str:
    """A case for each bug, the one to look at first at the front: `failure`, or `skipped` if it is known. Then a
    case for each clause that no bug breaks: `skipped` if nothing exercised it, `error` if the harness failed. A run
    whose exit status is not 0 has a failure or an error; a run that passes has none."""
    suite = Element("testsuite", name="kvconform")
    broken = bugs(record)
    for bug in broken:
        _add_bug(suite, bug, record)
    theirs = {clause for bug in broken for clause in bug.clauses}
    for clause in (c for c in record.clauses if c.id not in theirs and c.verdict != "NOT_CLAIMED"):
        _add_clause(suite, clause)
    for problem in (p for p in record.problems if p.startswith(UNCLAIMED)):
        _add(suite, "adapter", problem, "failure", problem)
    if record.exit_status and not _count(suite, "failure") + _count(suite, "error"):
        result = standing(record)
        _add(suite, "run", "the run as a whole", "error", f"{result.words}. {result.because}")
    _add_totals(suite, record)
    return _written(suite)


def _add_bug(suite: Element, bug: Bug, record: Record) -> None:
    name = f"{bug.clauses[0] if bug.clauses else 'no clause'}: {bug.title}"
    known = bug.verdict == "XFAIL"
    message = f"known: {bug.reason}" if known else f"{bug.verdict}: {bug.reason}"
    _add(suite, bug.chapter, name, "skipped" if known else "failure", message, told(bug, record))


def _add_clause(suite: Element, clause: ClauseRecord) -> None:
    tag = {"NOT_RUN": "skipped", "HARNESS_ERROR": "error"}.get(clause.verdict, "")
    tag = "failure" if clause.verdict in BROKEN else tag
    _add(suite, clause.chapter, clause.id, tag, clause.reason)


def _add(suite: Element, chapter: str, name: str, tag: str, message: str, text: Iterable[str] = ()) -> None:
    where = ".".join(filter(None, ("kvconform", chapter)))
    case = SubElement(suite, "testcase", classname=_legal(where), name=_legal(name))
    if tag:
        shown = SubElement(case, tag, message=_legal(message).strip().partition("\n")[0])
        shown.text = _legal("\n\n".join(filter(None, text)) or message)


def _count(suite: Element, tag: str) -> int:
    return sum(case.find(tag) is not None for case in suite)


def _add_totals(suite: Element, record: Record) -> None:
    suite.set("tests", str(len(suite)))
    for name, tag in zip(("failures", "errors", "skipped"), TAGS, strict=True):
        suite.set(name, str(_count(suite, tag)))
    suite.set("time", f"{record.seconds:.3f}")
    suite.set("timestamp", _legal(record.started))


def _written(suite: Element) -> str:
    root = Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _legal(text: str) -> str:
    """The text made public, without the characters that XML does not allow."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in published(text))
