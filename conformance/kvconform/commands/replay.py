"""`kvconform replay TRACE`: replays a trace step by step, on the reference or on an adapter it judges."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from kvconform.commands.arguments import add_deadline, add_level

if TYPE_CHECKING:
    from kvconform.judge.trial_result import TrialResult
    from kvspec.trace import Trace

HELP = "replay a trace step by step, on the reference or on an adapter"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.usage = "kvconform replay [options] TRACE [-- COMMAND ...]"
    parser.add_argument(
        "trace", help="a trace in words, such as 'ring window=4: append 5; view'; a file; or - for standard input"
    )
    parser.add_argument(
        "--adapter", help="judge this adapter on the trace; without it, show what the reference does"
    )
    parser.add_argument("--draw", action="store_true", help="draw slots and queries at each step")
    parser.add_argument("--svg", metavar="FILE", help="write the drawing of --draw to this file as SVG")
    add_level(parser)
    add_deadline(parser)


def main(options: Namespace) -> int:
    """Print each step; return 1 if the adapter differs."""
    from kvconform.judge import steps
    from kvconform.runner import output
    from kvreports.drawing.svg import draw_svg
    from kvreports.run.text import draw as drawn
    from kvspec.notation import sentence

    trace = read(options.trace)
    seen = (
        _on_adapter(trace, options) if options.adapter or options.process else _on_reference(trace, options.level)
    )
    print(sentence(trace) + "\n")
    print(drawn(steps.failing_steps(seen)) if options.draw else _plain(seen))
    for difference in seen.differences:
        print(f"\n{seen.verdict}: {', '.join(seen.blamed) or 'no clause'}: {difference.message}")
    if options.svg:
        output.leave(Path(options.svg), str(draw_svg(steps.failing_steps(seen), sentence(trace))))
        sys.stderr.write(f"kvconform: drawing at {options.svg}\n")
    return int(seen.failed)


def read(path: str) -> Trace:
    """Read a trace from its words, a file or standard input. Raises BadInput."""
    from kvspec import notation
    from kvspec import trace as traces
    from kvspec.bounded_file import read_bytes

    if ": " in path and not os.path.exists(path):
        return notation.from_sentence(path)
    if path == "-":
        return traces.loads(sys.stdin.buffer.read(traces.LARGEST_FILE + 1))
    return traces.loads(read_bytes(path, "a trace file", traces.LARGEST_FILE))


def _on_reference(trace: Trace, level: str | None) -> TrialResult:
    from kvadapters.reference import Reference
    from kvconform.judge import trial
    from kvconform.oracle.reference import CitingReference
    from kvspec.contract import description

    return trial.run(trace, CitingReference(), description(Reference().describe()), level)


def _on_adapter(trace: Trace, options: Namespace) -> TrialResult:
    from kvconform.judge import trial
    from kvconform.worker.client import Worker, python_worker
    from kvconform.worker.remote_session import RemoteSession
    from kvspec.errors import BadInput
    from kvspec.trace import used_chapters

    command = list(options.process) or python_worker(options.adapter)
    with Worker(command, deadline=options.deadline) as worker:
        adapter = worker.describe()
        missing = used_chapters(trace) - set(adapter.chapters)
        if missing:
            raise BadInput(f"{adapter.name} does not declare {', '.join(sorted(missing))}, which the trace uses")
        level = options.level or trial.level_of(trace, adapter)
        session = RemoteSession(worker, trial.observables(trace, adapter, level))
        return trial.run(trace, session, adapter, level)


def _plain(seen: TrialResult) -> str:
    from msgspec import UNSET

    from kvconform.judge import steps
    from kvspec.notation import words

    lines = []
    for op, step in zip(seen.trace.ops, steps.failing_steps(seen), strict=False):
        shown = [(k, getattr(step.found, k)) for k in ("result", "offset", "slots")]
        told = [f"{k} {_value(v)}" for k, v in shown if v is not UNSET]
        wrong = [f"expected {k} {_value(step.expected.get(k))}" for k in step.differs]
        lines.append(f"  {words(op):24} {', '.join([*told, *wrong])}")
    return "\n".join(lines)


def _value(value: object) -> str:
    return " ".join(map(str, value)) or "empty" if isinstance(value, list) else str(value)
