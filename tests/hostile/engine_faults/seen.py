"""What the log of the scheduler sees of planted faults, and what answers show in the same lives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tabulate import tabulate

from hostile.engine_faults import Fault

There = Sequence[tuple[Fault, Mapping[str, Any]]]
BOTH, LOG, ANSWERS, NEITHER = "both", "the log alone", "answers alone", "neither"

TEXT = """Of {judged} faults random lives were judged both ways: by their log, and by their answers. Which of the
two sees a fault within {most} requests:

{classes}

{both} are seen both ways: {log_first} by the log first, {answers_first} by answers first, the others after as many
requests. The log alone sees {log_alone}. Neither sees {neither}. By requests that are aimed at what engines do, all
of these are found (*by requests* below).

What the log shows, and what the same faults are blamed on by requests:

{pairs}
"""


def by(row: Mapping[str, Any]) -> str:
    """Say which of the two sees a fault."""
    ways = {(True, True): BOTH, (True, False): LOG, (False, True): ANSWERS, (False, False): NEITHER}
    return ways[bool(row["log_clause"]), bool(row["log_answers"])]


def seen(there: There) -> str:
    """Say what each of the two sees, of faults whose lives were judged."""
    judged = [(fault, row) for fault, row in there if "log_answers" in row]
    both = [row for _, row in judged if by(row) == BOTH]
    ids = {way: [f"`{fault.id}`" for fault, row in judged if by(row) == way] for way in (LOG, NEITHER)}
    return TEXT.format(
        judged=len(judged),
        most=max((row["log_asked"] for _, row in judged), default=0),
        classes=classes(judged),
        both=len(both),
        log_first=sum(row["log_requests"] < row["log_answers"] for row in both),
        answers_first=sum(row["log_requests"] > row["log_answers"] for row in both),
        log_alone=", ".join(ids[LOG]) or "none",
        neither=", ".join(ids[NEITHER]) or "none",
        pairs=pairs(judged),
    )


def classes(judged: There) -> str:
    """Give the table of classes."""
    head = ["class", "faults", "of the scheduler", *(ways := (BOTH, LOG, ANSWERS, NEITHER))]
    of = Counter((fault.sort, by(row)) for fault, row in judged)
    scheduler = Counter(fault.sort for fault, _ in judged if fault.log)
    sorts = Counter(fault.sort for fault, _ in judged)
    lines = [[sort.capitalize(), n, scheduler[sort], *(of[sort, way] for way in ways)] for sort, n in sorts.items()]
    lines.append(["all", *(sum(line[i] for line in lines) for i in range(1, len(head)))])
    return tabulate(lines, head, tablefmt="github")


def pairs(judged: There) -> str:
    """Give the table of clauses of STEP, and of those of SERVE that the same faults are blamed on."""
    blamed: dict[str, Counter[str]] = {}
    for _, row in judged:
        blamed.setdefault(row["log_clause"], Counter())[row.get("clause", "")] += 1
    lines = [[log or "clean", of.total(), told(of)] for log, of in sorted(blamed.items(), key=number)]
    return tabulate(lines, ["the log breaks", "faults", "by requests"], tablefmt="github")


def told(of: Mapping[str, int]) -> str:
    """Give clauses, and how often."""
    return ", ".join(f"{name} ({n})" for name, n in sorted(of.items(), key=number))


def number(of: tuple[str, Any]) -> int:
    """Give the number of a clause: what breaks none is the last."""
    return int(of[0].partition("-")[2] or 1000)
