"""`kvconform replay TRACE`: replays a trace step by step, on the reference or on an adapter it judges."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from pathlib import Path

from kvconform.commands.arguments import refuse_without_adapter
from kvconform.generate.claims.fit_to_adapter import lacked
from kvconform.judge import steps, trial
from kvconform.judge.trial_result import TrialResult
from kvconform.message import tell
from kvconform.oracle.reference import CitingReference, claims
from kvconform.runner.record import output
from kvconform.runner.settings import Settings
from kvconform.runner.under_test import opened
from kvconform.runner.verdict import known
from kvreports.drawing.svg import draw_svg
from kvreports.drawing.text import draw as drawn
from kvspec import notation
from kvspec import trace as traces
from kvspec.contract import Description
from kvspec.errors import BadInput
from kvspec.notation import sentence, words
from kvspec.outside import read_bytes
from kvspec.trace import Trace, used_chapters


def main(options: Namespace) -> int:
    """Print each step; return 1 if the adapter differs in what is not known of it, 3 if memory ended it before."""
    trace = read(options.trace)
    if not (options.adapter or options.process):
        refuse_without_adapter(options)
    seen = (
        _on_adapter(trace, options) if options.adapter or options.process else _on_reference(trace, options.level)
    )
    print(sentence(trace) + "\n")
    print(drawn(steps.failing_steps(seen)) if options.draw else _plain(seen))
    for difference in seen.differences:
        print(f"\n{_verdict(seen)}: {', '.join(seen.blamed) or 'no clause'}: {difference.message}")
    if seen.over_memory:
        print(f"\n{seen.over_memory}")
    if options.svg:
        output.leave(Path(options.svg), str(draw_svg(steps.failing_steps(seen), sentence(trace))))
        tell(f"drawing at {options.svg}")
    return 3 if seen.over_memory else int(seen.failed and not seen.known)


def _verdict(seen: TrialResult) -> str:
    return f"known ({'; '.join(dict.fromkeys(seen.known.values()))})" if seen.known else seen.verdict


def read(path: str) -> Trace:
    """Read a trace from its words, a file or standard input. Raises BadInput."""
    if ": " in path and not os.path.exists(path):
        return notation.from_sentence(path)
    if path == "-":
        return traces.loads(sys.stdin.buffer.read(traces.LARGEST_FILE + 1))
    if not os.path.exists(path):
        raise BadInput(f"{path!r:.80} is no file, and no trace in words, such as 'ring window=4: append 5; view'")
    return traces.loads(read_bytes(path, "a trace file", traces.LARGEST_FILE), path)


def _on_reference(trace: Trace, level: str | None) -> TrialResult:
    return trial.on(trace, lambda observe: CitingReference(observe=observe), claims(), level)


def _on_adapter(trace: Trace, options: Namespace) -> TrialResult:
    under_test = opened(_settings(options))
    with under_test.worker:
        _demand_claimed(trace, under_test.adapter)
        if options.after:
            under_test.run(read(options.after))
        return under_test.trial(trace)


def _settings(options: Namespace) -> Settings:
    return Settings(
        adapter=options.adapter or Path(options.process[0]).name,
        command=tuple(options.process),
        level=options.level,
        deadline=options.deadline,
        known=known.read(options.known),
    )


def _demand_claimed(trace: Trace, adapter: Description) -> None:
    """Refuse a trace that uses what the adapter does not claim: nobody judges that. Raises BadInput."""
    missing = sorted(used_chapters(trace) - set(adapter.chapters))
    missing = missing or list(dict.fromkeys(lacked(trace, adapter)))
    if missing:
        raise BadInput(f"{adapter.name} does not claim {', '.join(missing)}, which the trace uses")


def _plain(seen: TrialResult) -> str:
    lines = []
    for op, step in zip(seen.trace.ops, steps.failing_steps(seen), strict=False):
        expected, found = steps.said(step.expected), steps.said(step.found)
        told = [f"{k} {_value(found[k])}" for k in ("result", "offset", "slots") if k in found]
        wrong = [f"expected {k} {_value(expected[k])}" for k in step.differs if k in expected]
        lines.append(f"  {words(op):24} {', '.join([*told, *wrong])}")
    return "\n".join(lines)


def _value(value: object) -> str:
    return " ".join(map(str, value)) or "empty" if isinstance(value, list) else str(value)
