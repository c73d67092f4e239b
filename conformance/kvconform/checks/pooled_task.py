"""Checks as tasks of a pool. Each of its processes opens a worker of its own."""

from __future__ import annotations

import json
import os
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from functools import lru_cache

from kvconform.checks.check import LONGEST_REASON, Check, judge, reason
from kvconform.checks.suite import by_id
from kvconform.runner.settings import Settings
from kvconform.runner.under_test import AdapterUnderTest, opened
from kvconform.runner.verdict.tally import CheckResult, Tally
from kvconform.worker.tasks import Pool, ProcessDied, completed
from kvspec.contract import Description


def judge_on(pool: Pool, settings: Settings, checks: Sequence[Check]) -> Iterator[CheckResult]:
    """Judge checks as tasks of a pool; results come in the order in which tasks end.

    If its process dies, a check is repeated once; if it dies again, that is a failure of the harness.
    """
    lost = deque[Check]()
    for (_, check), future in completed(pool, judge_check, ((settings, check.id) for check in checks)):
        if isinstance(future.exception(), ProcessDied):
            lost.append(by_id(check))
        else:
            yield _result(by_id(check), future)
    for (_, check), future in completed(pool, judge_check, ((settings, check.id) for check in lost)):
        yield _result(by_id(check), future)


def _result(check: Check, future: Future[str]) -> CheckResult:
    error = future.exception()
    if error is None:
        try:
            return _read(future.result(), check.id)
        except (TypeError, ValueError) as e:
            error = e
    tally = Tally()
    tally.not_finished(check.id, check.clause, _ending(error))
    return CheckResult(check.id, tally, error="".join(traceback.format_exception(error)))


def _read(said: str, check: str) -> CheckResult:
    """Read the result of a check, which may come from another machine. Raises ValueError or TypeError."""
    result = CheckResult.loads(said)
    if result.check != check:
        raise ValueError(f"it was answered by the result of {result.check:.100}")
    return result


def _ending(error: BaseException) -> str:
    if isinstance(error, ProcessDied):
        return f"the process that judged it ended with status {error.exitcode}, twice"
    return reason(error)


def judge_check(settings: Settings, check: str) -> str:
    """Judge one check, by its id, in a process of a pool; give the result as JSON. Where the adapter says something
    else of itself than that of the run, it is not judged."""
    under_test = _under_test(settings, os.getpid())
    if settings.said and under_test.adapter.said() != settings.said:
        return CheckResult(
            check, Tally(problems=[f"adapter: {_otherwise(settings.said, under_test.adapter)}"])
        ).dumps()
    return judge(under_test, by_id(check)).dumps()


def _otherwise(said: str, adapter: Description) -> str:
    """What an adapter says otherwise in another process."""
    first, second = json.loads(said), json.loads(adapter.said())
    name = next(n for n in sorted(first | second) if first.get(n) != second.get(n))
    was, now = (json.dumps(each.get(name))[:LONGEST_REASON] for each in (first, second))
    return f"it describes itself otherwise in another process: {name} was {was}, is {now}"


@lru_cache(maxsize=1)
def _under_test(settings: Settings, process: int) -> AdapterUnderTest:
    """The adapter of this process, opened for its first check. A forked process opens its own."""
    return opened(settings)
