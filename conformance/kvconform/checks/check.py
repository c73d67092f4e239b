"""A check: one named piece of the suite, and how it is judged in this process."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from kvconform.runner.under_test import AdapterUnderTest, Differs, DiffersAsKnown
from kvconform.runner.verdict.tally import CheckResult
from kvconform.worker import memory
from kvspec.registry import demand_chapters

SYSTEM = "system"
"""The chapter of the check of all chapters at once."""

LONGEST_REASON = 300
"""Characters of an exception's message that a problem of the record shows."""


@dataclass(frozen=True)
class Check:
    """Judges traces on the adapter under test, and notes in its tally what they showed."""

    id: str
    """Chapter, source of the traces, name: `ring/example/CACHE-1.2`. No path: moving a file changes no record."""
    chapter: str
    """The chapter it is about; for checks beyond the chapters `honesty` or `system`."""
    needs: frozenset[str]
    """Chapters that an adapter must claim to be judged by it."""
    run: Callable[[AdapterUnderTest], None]
    clause: str = ""
    """The one clause it is about; empty where it is about a whole chapter or more."""
    any_of: tuple[frozenset[str], ...] = ()
    """Groups of chapters, of each of which an adapter must claim one at least."""
    takes_long: bool = False
    """Whether quick runs, and runs of a few clauses, leave it out."""

    def __post_init__(self) -> None:
        demand_chapters(self.needs.union(*self.any_of), f"the check {self.id}")

    def lacks(self, claimed: Collection[str]) -> list[str]:
        """The chapters that it takes and that are not claimed: `ring or store` where one is enough."""
        groups = [" or ".join(sorted(group)) for group in self.any_of if not group & set(claimed)]
        return [*sorted(self.needs - set(claimed)), *groups]


def judge(under_test: AdapterUnderTest, check: Check) -> CheckResult:
    """Judge one check. Anything it raises but Differs is a failure of the harness."""
    began, before = time.monotonic(), under_test.operations
    difference, known, error, interrupted = "", "", "", False
    with under_test.judging(check.id) as tally:
        try:
            check.run(under_test)
            under_test.require_no_difference()
        except Differs as e:
            difference = str(e)
        except DiffersAsKnown as e:
            known = str(e)
        except KeyboardInterrupt:
            interrupted = True
        except BaseException as e:
            error = traceback.format_exc()
            tally.not_finished(check.id, check.clause, reason(e))
    return CheckResult(
        check.id,
        tally,
        difference,
        known,
        error,
        under_test.operations - before,
        time.monotonic() - began,
        (memory.peak(), under_test.worker.peak()),
        interrupted,
    )


def reason(error: BaseException) -> str:
    """An exception in a line."""
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}"[:LONGEST_REASON]


def judge_here(under_test: AdapterUnderTest, checks: Sequence[Check]) -> Iterator[CheckResult]:
    """Judge one check after another in this process. Raises KeyboardInterrupt after an interrupted one."""
    for check in checks:
        result = judge(under_test, check)
        yield result
        if result.interrupted:
            raise KeyboardInterrupt
