"""Judges the faults that are planted in the example engine, by requests and by the log of its steps, and writes the
table of them.

`python -m tools.engine_faults [--seed N] [--write] [ID ...]` in `tests/`; an id may be cut short. With `--write`
what was found goes to `reports/published/planted.json`, and the page is made of all that stands there. `--first` is
quicker: nothing is made short or blamed, and no log is judged. `--log` judges logs alone, those of the engines in
which nothing is wrong too. `--controls N` asks these so many requests; `--page` makes the page alone."""

from __future__ import annotations

import json
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from hostile.engine_faults import CONTROLS, FAULTS, Variant
from hostile.engine_faults.judged import REQUESTS, First, judged
from hostile.engine_faults.logged import shown
from hostile.engine_faults.page import FOUND, PAGE, page, said


def main() -> int:
    """Print a line for each fault or control; 1 if a fault was not found, or a control was accused."""
    parser = ArgumentParser(prog="tools.engine_faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--log", action="store_true")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--controls", type=int, metavar="N")
    parser.add_argument("ids", nargs="*", metavar="ID")
    given = parser.parse_args()
    bad = 0
    for variant in chosen(given):
        row = judge(variant, given)
        bad += accused(variant, row)
        print(f"{variant.id:44} {json.dumps(row)}", flush=True)
        if given.write:
            keep(variant.id, row)
    if given.write or given.page:
        PAGE.write_text(page(said()), encoding="utf-8")
    return int(bad > 0)


def accused(variant: Variant, row: dict[str, Any]) -> bool:
    """Whether a fault was not found, an engine without one was accused, or a log shows something else."""
    other = row.get("log_clause", "") != getattr(variant, "log", "") and "log_clause" in row
    return other or bool(row.get("wrong")) or row.get("requests", 1) == 0


def chosen(given: Namespace) -> list[Variant]:
    """The faults that are asked for, or the engines in which nothing is wrong."""
    if given.page:
        return []
    faults = {} if given.controls else FAULTS
    right = CONTROLS if given.controls or given.log else {}
    of = tuple(given.ids or [""])
    return [variant for variant in (*faults.values(), *right.values()) if variant.id.startswith(of)]


def judge(variant: Variant, given: Namespace) -> dict[str, Any]:
    """Judge an engine as it is asked for."""
    if given.log:
        return logged(variant, given.seed)
    if given.controls:
        return asked(variant, given.controls, given.seed)
    if given.first:
        return first(variant, given.seed)
    return {**found(variant, given.seed), **logged(variant, given.seed)}


def found(fault: Variant, seed: int) -> dict[str, Any]:
    """Judge an engine with a fault by requests: after how many it is found (0: not within those that there are),
    the clause that is blamed, and the shortest history."""
    run = judged(fault, REQUESTS, seed)
    if not run.failures:
        return {"requests": 0}
    failure = run.failures[0]
    return {"requests": failure.after, "clause": failure.clause, "history": failure.history}


def logged(variant: Variant, seed: int) -> dict[str, Any]:
    """Judge the log of random lives, and what is answered in them: after how many requests each is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        log = shown(variant, Path(folder) / "steps.jsonl", seed=seed)
    said = {"log_requests": log.requests, "log_clause": log.clause, "log_answers": log.answers}
    return {**said, "log_asked": log.asked}


def first(fault: Variant, seed: int) -> dict[str, Any]:
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
