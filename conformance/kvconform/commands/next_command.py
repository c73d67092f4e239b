"""What to do next: the last line of `run` and `smoke`."""

from __future__ import annotations

import shlex
from argparse import Namespace

from kvreports.run import findings
from kvreports.run.overview import adapter_name
from kvreports.run.standing import standing
from kvreports.safe_text import line
from kvspec.records.run import Record


def headline(record: Record) -> str:
    """The result of a run in one line."""
    result = standing(record)
    return f"{line(adapter_name(record))}: {result.words}" + (
        f" ({line(result.because)})" if result.because else ""
    )


def after_run(record: Record, options: Namespace) -> str:
    """After a failure: explain the clause. After success: judge everything with a report, then measure."""
    found, named = findings.findings(record)[:1], _named(options)
    if record.exit_status and found and found[0].ids:
        return f"kvconform explain {line(found[0].ids[0])}"
    if record.exit_status:
        return f"kvconform smoke {named}"
    if "left out" in record.selection or options.chapter or options.clause or not options.report:
        return f"kvconform run {_judged_by(options)}--report report {named}"
    return f"kvconform {'prove' if options.process else 'profile'} {named}"


def after_smoke(fine: bool, options: Namespace) -> str:
    """If the adapter starts and answers: judge it. If not: fix it and try again."""
    return f"kvconform run --quick {_named(options)}" if fine else f"fix it, then kvconform smoke {_named(options)}"


def _judged_by(options: Namespace) -> str:
    """The level and the file of known deviations that were asked for: another run is judged by the same."""
    known = f"--known {shlex.quote(str(options.known))} " if options.known else ""
    return ("--visible " if options.level == "visible" else "") + known


def _named(options: Namespace) -> str:
    """The adapter as the command line named it."""
    return shlex.join(["--", *options.process]) if options.process else shlex.quote(options.adapter)
