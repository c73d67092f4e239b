"""unittest as a front end: a class of yours judges an adapter as one test.

    from kvconform import testcase

    class TestRing(testcase.ConformanceTestCase):
        adapter = "kvadapter_my_engine:ring"

`python -m unittest` runs it. Each way in which clauses broke is a failure of its own, with its trace and drawing.
"""

from __future__ import annotations

import unittest
from collections.abc import Collection
from pathlib import Path
from typing import ClassVar

from kvconform.api import ShownRecord, run
from kvreports.run import findings
from kvreports.run.standing import standing
from kvreports.run.text_failure import failure
from kvspec.errors import CannotRun


class ConformanceTestCase(unittest.TestCase):
    """Judges `adapter`. The other attributes are arguments of `kvconform.run`."""

    adapter: ClassVar[str | type] = ""
    """Its name, `module:Class`, or the class itself."""
    quick: ClassVar[bool] = True
    chapters: ClassVar[Collection[str]] = ()
    clauses: ClassVar[Collection[str]] = ()
    known: ClassVar[str | Path | None] = None
    """A file of known deviations; `kvconform.toml` in the working folder, if it exists."""
    report: ClassVar[str | Path | None] = None
    """A folder for the record and its pages."""

    def test_conforms(self) -> None:
        """Judge it. A device that is missing skips the test; all else that keeps it from being judged fails it."""
        if type(self) is ConformanceTestCase:
            self.skipTest("it is a base: a subclass names the adapter")
        if not self.adapter:
            self.fail(f"{type(self).__name__}.adapter must name an adapter")
        try:
            record = run(
                self.adapter,
                quick=self.quick,
                chapters=self.chapters,
                clauses=self.clauses,
                known=self.known,
                report=self.report,
            )
        except CannotRun as e:
            self.skipTest(f"the adapter cannot run here: {e}")
        self._demand(record)

    def _demand(self, record: ShownRecord) -> None:
        """Fail for each finding, and for a run that is no answer."""
        for finding in findings.findings(record):
            if finding.verdict == "XFAIL":
                continue
            with self.subTest(clauses=", ".join(finding.ids), verdict=finding.verdict):
                shown = finding.message if finding.failure is None else f"\n{failure(finding.failure)}"
                self.fail(f"{finding.cause}: {shown}")
        result = standing(record)
        if record.exit_status:
            self.fail(f"{result.words}: {result.because}")
