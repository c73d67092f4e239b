"""The page of the faults that are planted in the example engine: what each is, and how it was found."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tabulate import tabulate

from hostile.engine_faults import CONTROLS, FAULTS, Fault
from hostile.engine_faults.judged import REQUESTS
from hostile.engine_faults.seen import seen

ROOT = Path(__file__).parents[3]
FOUND = ROOT / "reports" / "published" / "planted.json"
PAGE = FOUND.parent / "PLANTED.md"
Row = Mapping[str, Any]

TEXT = """# Faults that are planted in a serving engine

{faults} faults are planted in the [engine of the examples](../../docs/examples/serving_engine), by what set
them off where they were first found. Each engine is judged twice. *By requests*: `kvconform run --engine`, {most}
requests at most, which sees answers alone. *By its log*: `kvconform check`, which sees what the scheduler decided
in random lives, and no answer. *Their answers* are those of these lives, by the same network in float64. The
numbers are requests until the fault was found, without those that made a history short. The log of a fault that the
scheduler does not decide is *clean*: a kernel, a copy, a scale or a bias is wrong, and no table is. What is left
empty was not judged since the engine was changed.

By requests {found} of {asked} were found. {blamed} of these were made short and blamed, {named} of them on a clause
that their trigger belongs to. Of {logs} the log was judged: the logs of {decided} are of faults of the scheduler,
and those of {logged} break the clause that they break; of the others {clean} are clean.
`python -m tools.engine_faults --write` in `tests/` makes [planted.json](planted.json) and this page.

## What each of the two sees

{seen}
"""
CONTROLS_TEXT = """## Nothing wrong

Engines that do other things than this one and nothing wrong, how many requests they were asked, and how many of the
histories showed something wrong. Behind that, the log of random lives, and how many requests these had.

"""
HEAD = "fault", "trigger", "source", "by requests", "blamed on", "history", "by its log", "breaks", "their answers"
UNNAMED = "*(another clause)*"


def said() -> dict[str, Row]:
    """Give what was found of each fault and control, by its id."""
    rows: dict[str, Row] = json.loads(FOUND.read_text(encoding="utf-8")) if FOUND.exists() else {}
    return rows


def page(rows: Mapping[str, Row]) -> str:
    """Give the page, from what was found."""
    there = [(fault, rows.get(fault.id, {})) for fault in FAULTS.values()]
    parts = (part(sort, there) for sort in Counter(fault.sort for fault, _ in there))
    return "".join([TEXT.format(**counts(there), seen=seen(there)), *parts, CONTROLS_TEXT, controls(rows)])


def counts(there: list[tuple[Fault, Row]]) -> dict[str, int]:
    """Count what the text says."""
    logs = [(fault.log, row["log_clause"]) for fault, row in there if "log_clause" in row]
    return {
        "faults": len(FAULTS),
        "most": REQUESTS,
        "asked": sum("requests" in row for _, row in there),
        "found": sum(row.get("requests", 0) > 0 for _, row in there),
        "blamed": sum("clause" in row for _, row in there),
        "named": sum(row.get("clause") in fault.clauses for fault, row in there),
        "logs": len(logs),
        "decided": sum(bool(log) for log, _ in logs),
        "logged": sum(log == clause for log, clause in logs if log),
        "clean": sum(log == clause for log, clause in logs if not log),
    }


def part(sort: str, there: list[tuple[Fault, Row]]) -> str:
    """Give the faults of a class."""
    lines = [cells(fault, row) for fault, row in there if fault.sort == sort]
    return f"## {sort.capitalize()}\n\n{tabulate(lines, HEAD, tablefmt='github')}\n\n"


def cells(fault: Fault, row: Row) -> list[str]:
    """Give a fault's line. A history has so many steps."""
    clause, history = row.get("clause", ""), row.get("history", "")
    blamed = clause if not clause or clause in fault.clauses else f"{clause} {UNNAMED}"
    asked = str(row["requests"] or "not found") if "requests" in row else ""
    by_requests = [asked, blamed, f"{len(history.split('; '))} steps" if history else ""]
    by_log = [""] * 3
    if "log_clause" in row:
        by_log = [str(row["log_requests"] or ""), row["log_clause"] or "clean", str(row["log_answers"] or "right")]
    return [f"`{fault.id}` {fault.says}", fault.trigger, source(fault.source), *by_requests, *by_log]


def source(of: str) -> str:
    """Link a report; an entry of the catalogue has its id."""
    if not of.startswith("https://"):
        return of or "none known"
    *_, repository, kind, number = of.rstrip("/").split("/")
    return f"[{repository} {'' if kind == 'commit' else '#'}{number[:8]}]({of})"


def controls(rows: Mapping[str, Row]) -> str:
    """Give the table of engines in which nothing is wrong."""
    there = [(control, rows[control.id]) for control in CONTROLS.values() if control.id in rows]
    names = ["requests", "wrong", *dict.fromkeys(name for _, row in there for name in row if name not in COUNTED)]
    head = ["engine", *names, "log", "its requests"]
    lines = [[f"`{c.id.partition('/')[2]}` {c.says}", *(r[name] for name in names), *log(r)] for c, r in there]
    return tabulate(lines, head, tablefmt="github") + "\n"


def log(row: Row) -> list[str]:
    """Give what the log of an engine showed, and of how many requests."""
    return [row["log_clause"] or "clean", str(row["log_asked"])] if "log_clause" in row else ["", ""]


COUNTED = ("requests", "wrong", "log_requests", "log_clause", "log_answers", "log_asked")
