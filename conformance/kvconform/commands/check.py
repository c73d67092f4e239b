"""`kvconform check LOG`: judges an engine by its log, without an adapter. A log of steps has a judge of its own."""

from __future__ import annotations

import time
from argparse import Namespace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from kvconform.commands import check_steps
from kvconform.judge import trial
from kvconform.judge.trial_result import TrialResult
from kvconform.log import log_file
from kvconform.log.judge import judged
from kvconform.log.log_file import Life
from kvconform.log.log_session import LoggedInputs
from kvconform.message import tell
from kvconform.oracle.deviating import Deviating
from kvconform.runner.explaining import Explaining
from kvconform.runner.failure_entry import failure
from kvconform.runner.record import output, report_folder
from kvconform.runner.record.record import record
from kvconform.runner.verdict import known
from kvconform.runner.verdict.known import KnownDeviation
from kvconform.runner.verdict.models import demand_claimed
from kvconform.runner.verdict.tally import CheckResult, Tally
from kvconform.runner.verdict.verdict import Evidence, verdict_on
from kvconform.steps.log_file import is_steps
from kvspec.contract import Description
from kvspec.errors import BadInput
from kvspec.reading.clauses import index
from kvspec.records.run import Record


def main(options: Namespace) -> int:
    """Judge each life of the log; print the result and write the report. The exit status is that of `run`."""
    if is_steps(Path(options.log)):
        return check_steps.main(options)
    began, lives = time.monotonic(), log_file.read(Path(options.log))
    adapter = lives[0].adapter if options.level is None else lives[0].adapter.at_most(options.level)
    expected = known.applying(known.read(options.known), adapter)
    demand_claimed(expected, adapter)
    results = [_judged(options.log, life, adapter, expected) for life in lives]
    record = _record(results, adapter, options, time.monotonic() - began)
    write = partial(report_folder.write, record, Path(options.report)) if options.report else None
    return output.deliver([record], options.format, write) or record.exit_status


def _judged(name: str, life: Life, adapter: Description, expected: tuple[KnownDeviation, ...]) -> CheckResult:
    """Judge one life as one check. Raises BadInput."""
    check, tally = f"{name}, line {life.first}", Tally()
    try:
        seen = _known(life, adapter, expected)
    except BadInput as e:
        raise BadInput(f"{name}, {e}") from None
    tally.add(seen, "log", check)
    if not seen.failed:
        return CheckResult(check, tally, operations=len(seen.steps))
    failed = failure(seen, "log", check)
    tally.failures.append(failed)
    last = len(seen.steps)
    tell(f"{name}, {life.where(last - 1)}: {seen.differences[0].message}")
    if left := len(life.lines) - last:
        behind = "are as known" if seen.known else "were not judged"
        tell(f"the {left} operations after it {behind}")
    why = "; ".join(dict.fromkeys(failed.known.values())) if failed.expected else ""
    return CheckResult(check, tally, difference=failed.message, known=why, operations=last)


def _known(life: Life, adapter: Description, expected: tuple[KnownDeviation, ...]) -> TrialResult:
    """Judge one life, with what is known. Raises BadInput."""

    def explained(seen: TrialResult, deviating: Deviating) -> bool:
        return trial.explained(seen, deviating, adapter, LoggedInputs(life))

    known, again = Explaining(expected, adapter, explained), partial(judged, life, adapter)
    return known.explain(again(), again, partial(failure, source="log"))


def _record(results: list[CheckResult], adapter: Description, options: Namespace, seconds: float) -> Record:
    """The record of the clauses that the log exercised, in what they are about."""
    total = Tally()
    for result in results:
        total.merge(result.tally)
    shown = {*total.exercised, *(clause for failed in total.failures for clause in failed.clauses)}
    evidence = (Evidence(clause, total, adapter, partial=False) for i, clause in index().items() if i in shown)
    selected = {e.clause.id: e.clause for e in evidence if verdict_on(e).name != "NOT_RUN"}
    about: dict[str, Any] = {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "partial": False,
        "partial_reason": "",
        "command": [adapter.name],
        "selection": {
            "chapters": list(adapter.chapters),
            "clauses": [],
            "level": options.level,
            "log": options.log,
        },
        "memory": {},
    }
    return record(total, adapter, selected, about)
