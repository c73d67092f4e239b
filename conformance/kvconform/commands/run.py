"""`kvconform run`: judges an adapter by the suite's checks, in this process or in several."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from kvconform.checks.check import Check, judge_here
from kvconform.checks.suite import by_turns, read_for, selected, shut_out
from kvconform.commands import next_command
from kvconform.commands.arguments import refuse_of_engines
from kvconform.generate.amounts import CLAUSE_COVERS, CLAUSE_TRACES, QUICK_COVERS, QUICK_TRACES, TRACES
from kvconform.message import tell
from kvconform.runner import journal
from kvconform.runner.record import output
from kvconform.runner.run import Run
from kvconform.runner.settings import Settings
from kvconform.runner.verdict import known
from kvconform.version import require
from kvconform.worker import memory
from kvconform.worker.client import WorkerFailure
from kvspec.errors import BadInput
from kvspec.records.run import Record

MOST = 4
"""Default limit on judging processes: each worker takes memory and opens the device itself."""

FEWEST = 16
"""Fewest checks that are worth starting another process."""


def main(options: Namespace) -> int:
    """Judge an adapter, or a whole engine by requests; print the result and write the report."""
    if options.require_spec:
        require(options.require_spec)
    if options.server or options.engine:
        from kvconform.commands import serving  # it reads the probe's code, which no adapter needs

        return serving.main(options)
    refuse_of_engines(options)
    memory.collect_seldom()
    if options.watch:
        from kvconform.commands import watch  # few runs watch

        options.quick = options.quick is not False
        return watch.main(options, _main)
    return _main(options)


def _main(options: Namespace) -> int:
    """Judge an adapter once, print the result and write the report. Raises BadInput, CannotRun."""
    run, record = judged(options)
    unwritten = _deliver(record, options, writing(record, options))
    return 130 if run.interrupted else unwritten or record.exit_status


def judged(options: Namespace) -> tuple[Run, Record]:
    """Judge an adapter, and close what was opened. Raises BadInput, CannotRun."""
    settings = settings_of(options)
    read_for(settings)  # read before the adapter starts, so that an interruption from then on leaves a record
    run = started(settings, Path(options.report) if options.report else None, options.quiet)
    try:
        checks = _judged(run, options.processes or min(MOST, os.cpu_count() or 1), options.on)
        return run, run.record([check.id for check in checks])
    finally:
        run.close()


def writing(record: Record, options: Namespace) -> Callable[[], Path] | None:
    """Give what writes the report; None if none is wanted."""
    if not options.report:
        return None
    from kvconform.runner.record import report_folder  # it reads all that pages are made of

    return partial(report_folder.write, record, Path(options.report))


def _deliver(record: Record, options: Namespace, write: Callable[[], Path] | None) -> int:
    """Print the result, write the report, and name the next command. Gives 3 if the report cannot be written."""
    if options.quiet and options.format == "table":
        print(next_command.headline(record))
        _annotate(record, options)
        return output.written(write) if write else 0
    unwritten = output.deliver([record], options.format, write, unclaimed=options.unclaimed)
    _annotate(record, options)
    if options.format == "table" and not record.partial:
        tell(f"next: {next_command.after_run(record, options)}")
    return unwritten


def _annotate(record: Record, options: Namespace) -> None:
    """Write annotations for GitHub, on standard error: standard output is the result."""
    if options.annotations or os.environ.get("GITHUB_ACTIONS") == "true":
        from kvconform.runner.record import github

        sys.stderr.write("".join(f"{line}\n" for line in github.lines(record)))


def settings_of(options: Namespace) -> Settings:
    """Read the settings from the command line."""
    return Settings(
        adapter=options.adapter or Path(options.process[0]).name,
        command=tuple(options.process),
        traces=_usual_traces(options) if options.traces is None else options.traces,
        seed=options.seed,
        chapters=tuple(options.chapter),
        clauses=tuple(clause.upper() for clause in options.clause),
        level=options.level,
        deadline=options.deadline,
        memory_limit=options.memory << 20,
        cover_traces=QUICK_COVERS if options.quick else CLAUSE_COVERS if options.clause else 0,
        quick=bool(options.quick),
        known=known.read(options.known),
        max_failures=options.maxfail or 0,
        minutes=options.minutes or 0.0,
        again=_failed_before(options) if options.last_failed else (),
    )


def _failed_before(options: Namespace) -> tuple[str, ...]:
    """The checks that failed in the run whose report is in the folder. Raises BadInput."""
    if not options.report:
        raise BadInput("--last-failed needs --report DIR, the folder of the run before")
    failed = journal.failed(Path(options.report))
    if not failed:
        tell("nothing failed in the run before: all checks are judged")
    return failed


def _usual_traces(options: Namespace) -> int:
    return QUICK_TRACES if options.quick else CLAUSE_TRACES if options.clause else TRACES


def started(settings: Settings, folder: Path | None, quiet: bool = False) -> Run:
    """A run whose worker answers. Raises BadInput, CannotRun."""
    try:
        return Run(settings, folder, quiet)
    except WorkerFailure as e:
        raise BadInput(f"{settings.adapter}: its worker does not start: {e.verdict}: {e}") from None


def _judged(run: Run, processes: int, on: str | None) -> list[Check]:
    """Judge what is selected, and give it. Where a sample leaves a claimed clause unexercised, judge all traces of
    the clause's chapter. Skip this if the adapter took no rows in any trace of the sample."""
    checks = selected(run.settings, run.adapter)
    run.shut_out(shut_out(run.settings, run.adapter))
    _judge(run, run.settings, by_turns(checks) if run.settings.minutes else checks, processes, on)
    sampled = run.settings.cover_traces and not run.settings.again
    ended = run.partial_reason or (run.settings.quick and run.broken)
    missing = run.not_exercised() if sampled and not ended else []
    chapters = run.settings.shown_by(run.selected[clause] for clause in missing) & run.chapters_with_rows()
    more = [check for check in checks if check.chapter in chapters and "/example/" not in check.id]
    if more:
        _judge(
            run, replace(run.settings, cover_traces=0, traces=max(TRACES, run.settings.traces)), more, processes, on
        )
    return checks


def _judge(run: Run, settings: Settings, checks: Sequence[Check], processes: int, on: str | None) -> None:
    processes, ids = min(processes, len(checks) // FEWEST), [check.id for check in checks]
    if processes < 2 and not on:
        run.under_test.takes(settings)
        run.collect(judge_here(run.under_test, checks), ids)
        return
    from kvconform.checks.pooled_task import judge_on  # most runs on a clause judge in their own process
    from kvconform.runner.pool import opened

    run.under_test.worker.close()  # each process has its own
    settings = replace(settings, said=run.adapter.said())
    with opened(processes, on) as pool:
        run.collect(judge_on(pool, settings, checks), ids)
