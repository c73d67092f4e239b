"""Judges the faults that are planted in the example engine, by requests and by the log of its steps, and writes the
table of them.

`python -m tools.engine_faults [--seed N] [--write] [ID ...]` in `tests/`; an id may be cut short. With `--write`
what was found goes to `reports/published/planted.json`, and the page is made of all that stands there. `--first` is
quicker: nothing is made short or blamed, and no log is judged. `--controls N` asks the engines in which nothing is
wrong so many requests; `--page` makes the page alone."""

from __future__ import annotations

import json
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from hostile.engine_faults import CONTROLS, FAULTS, Fault, Variant
from hostile.engine_faults.judged import REQUESTS, First, judged
from hostile.engine_faults.logged import shown
from hostile.engine_faults.page import FOUND, PAGE, page, said


def main() -> int:
    """Print a line for each fault or control; 1 if a fault was not found, or a control was accused."""
    parser = ArgumentParser(prog="tools.engine_faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--controls", type=int, metavar="N")
    parser.add_argument("ids", nargs="*", metavar="ID")
    given = parser.parse_args()
    variants: dict[str, Any] = CONTROLS if given.controls else {} if given.page else FAULTS
    chosen = [variant for variant in variants.values() if variant.id.startswith(tuple(given.ids or [""]))]
    bad = 0
    for variant in chosen:
        if given.controls:
            row = asked(variant, given.controls, given.seed)
        else:
            row = first(variant, given.seed) if given.first else found(variant, given.seed)
        bad += bool(row.get("wrong")) or not row.get("requests")
        print(f"{variant.id:44} {json.dumps(row)}", flush=True)
        if given.write:
            keep(variant.id, row)
    if given.write or given.page:
        PAGE.write_text(page(said()), encoding="utf-8")
    return int(bad > 0)


def found(fault: Fault, seed: int) -> dict[str, Any]:
    """Judge an engine with a fault both ways: after how many requests each finds it (0: not within those that there
    are), the clause that it blames, and the shortest history of requests."""
    run = judged(fault, REQUESTS, seed)
    with tempfile.TemporaryDirectory() as folder:
        log = shown(fault, Path(folder) / "steps.jsonl", seed=seed)
    by_log = {"log_requests": log.requests if log.clause else 0, "log_clause": log.clause}
    if not run.failures:
        return {"requests": 0, **by_log}
    failure = run.failures[0]
    return {"requests": failure.after, "clause": failure.clause, "history": failure.history, **by_log}


def first(fault: Fault, seed: int) -> dict[str, Any]:
    """Judge an engine with a fault by requests, until something is wrong: after how many (0: not within them)."""
    run = judged(fault, REQUESTS, seed, First)
    return {"requests": run.asked if run.wrong_histories else 0}


def asked(control: Variant, requests: int, seed: int) -> dict[str, Any]:
    """Ask an engine in which nothing is wrong."""
    run = judged(control, requests, seed)
    return {"requests": run.asked, "wrong": run.wrong_histories, **run.driver.counts()}


def keep(id_: str, row: dict[str, Any]) -> None:
    """Keep what was found; what was found before stays, of all that are still planted."""
    rows = said()
    rows[id_] = {**rows.get(id_, {}), **row}
    order = {name: rows[name] for name in (*FAULTS, *CONTROLS) if name in rows}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(order[name])}" for name in order)
    FOUND.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
