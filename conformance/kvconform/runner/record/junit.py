"""The checks of a run as JUnit XML, for CI systems that show tests."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from kvconform.runner.record.private import published
from kvconform.runner.verdict.result import CheckResult
from kvreports.run import findings
from kvspec.records.run import Record


def dumps(results: Iterable[CheckResult], record: Record | None = None) -> str:
    """One test case for each check: `failure` if the adapter differs, `skipped` if it differs in a known way,
    `error` if the harness failed. With the record, the most important failure comes first, as in every report."""
    suite = Element("testsuite", name="kvconform")
    if record is not None:
        _look_first_at(record, suite)
    for result in _in_order(results, record):
        _add_case(suite, result)
    _add_totals(suite)
    root = Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add_case(suite: Element, result: CheckResult) -> None:
    chapter = result.check.partition("/")[0]
    case = SubElement(suite, "testcase", classname=f"kvconform.{chapter}", name=result.check)
    case.set("time", f"{result.seconds:.3f}")
    for tag, text in (("failure", result.difference), ("skipped", result.known), ("error", result.error)):
        if text:
            SubElement(case, tag, message=_message(tag, text)).text = _legal(text)


def _add_totals(suite: Element) -> None:
    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    for name, tag in (("failures", "failure"), ("skipped", "skipped"), ("errors", "error")):
        suite.set(name, str(sum(case.find(tag) is not None for case in cases)))
    suite.set("time", f"{sum(float(case.get('time', 0)) for case in cases):.3f}")


def _look_first_at(record: Record, suite: Element) -> None:
    """Name the clause that every report leads with, in a property of the suite."""
    for finding in (f for f in findings.findings(record)[:1] if f.verdict != "XFAIL"):
        value = f"{', '.join(finding.ids) or 'no clause'}: {finding.message}"
        SubElement(SubElement(suite, "properties"), "property", name="look first at", value=_legal(value))


def _in_order(results: Iterable[CheckResult], record: Record | None) -> list[CheckResult]:
    """The checks whose failures the record shows, in its order; then others that failed; then the rest."""
    shown = [failure.test for failure, _ in findings.failures(record)] if record else []

    def place(result: CheckResult) -> int:
        if result.check in shown:
            return shown.index(result.check)
        return len(shown) + (not (result.difference or result.error))

    return sorted(results, key=place) if record else list(results)


def _message(tag: str, text: str) -> str:
    """The last line of a traceback, the first line of all else."""
    lines = _legal(text).strip().splitlines()
    return lines[-1 if tag == "error" else 0]


def _legal(text: str) -> str:
    """The text made public, without the characters that XML does not allow."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in published(text))
