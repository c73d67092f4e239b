"""`kvconform check LOG` for a log of steps: judges a serving engine by what its scheduler decided."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

from kvconform.steps.verdict import Verdict, judged
from kvconform.steps.words import SUMMARY, summary, told
from kvspec.errors import BadInput
from kvspec.steps.clauses import index

FORMATS = ("table", "json")
MOST_SHOWN = 60
"""Events of the shortest log that are shown."""


def main(options: Namespace) -> int:
    """Judge a log; print the result. Raises BadInput."""
    if given := [name for name in ("known", "level", "report") if getattr(options, name)]:
        raise BadInput(f"a log of steps is judged without --{given[0]}")
    if options.format not in FORMATS:
        raise BadInput(f"the result of a log of steps is written as {' or '.join(FORMATS)}, not {options.format}")
    verdict = judged(Path(options.log))
    print(json.dumps(_document(verdict), indent=2) if options.format == "json" else _table(options.log, verdict))
    return verdict.exit_status


def _table(name: str, verdict: Verdict) -> str:
    lines = [f"{name}: {summary(verdict.counts)}"]
    if broken := verdict.broken:
        lines += [f"{broken.clause} is broken, line {broken.line}: {broken.message}"]
        lines += [f"  {broken.clause}: {index()[broken.clause].text}", *_shortest(verdict)]
        return "\n".join(lines)
    if not verdict.exercised:
        return "\n".join([*lines, "nothing was exercised: no page was found, taken again, shared or moved"])
    left = verdict.not_judged
    lines.append(f"no clause is broken, of {len(index()) - len(left)} that it was judged by")
    return "\n".join(
        [*lines, *([f"not judged, as the log has nothing for them: {', '.join(left)}"] if left else [])]
    )


def _shortest(verdict: Verdict) -> list[str]:
    if not verdict.shortest:
        return []
    shown = [f"  {told(line)}" for line in verdict.shortest]
    hidden = len(shown) - MOST_SHOWN
    shown = shown if hidden <= 0 else [*shown[:3], f"  ... {hidden} events ...", *shown[3 + hidden :]]
    return ["These events are enough for it, told in as few as can be:", *shown]


def _document(verdict: Verdict) -> dict[str, Any]:
    broken = verdict.broken
    said = {"clause": broken.clause, "line": broken.line, "message": broken.message} if broken else None
    return {
        "broken": said,
        "shortest": [{"line": line.number, **line.event} for line in verdict.shortest],
        "counts": {name: verdict.counts[name] for name in SUMMARY},
        "not_judged": verdict.not_judged,
        "exit_status": verdict.exit_status,
    }
