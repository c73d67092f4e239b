"""Prints the table of faults that are planted in the example engine: after how many requests `run --engine` finds
each, which clause it blames, and the shortest history.

`PYTHONPATH=../examples python -m tools.engine_faults [--seed N] [ID ...]` in `tests/`; an id may be cut short."""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from hostile.engine_faults import FAULTS, Fault
from hostile.engine_faults.judged import REQUESTS, judged


def main() -> int:
    """Print a line for each fault, and the rates; 1 if one was not found."""
    parser = ArgumentParser(prog="tools.engine_faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("ids", nargs="*", metavar="ID")
    given = parser.parse_args()
    chosen = [fault for fault in FAULTS.values() if fault.id.startswith(tuple(given.ids or [""]))]
    results = [row(fault, given.seed) for fault in chosen]
    found, right = sum(after > 0 for after, _ in results), sum(named for _, named in results)
    print(f"{found} of {len(chosen)} found within {REQUESTS} requests; the right clause is named for {right}")
    return int(found < len(chosen))


def row(fault: Fault, seed: int) -> tuple[int, bool]:
    """Judge an engine with a fault; print what is found, and give after how many requests (0: not found), and
    whether a clause is blamed that its trigger belongs to."""
    run = judged(fault, seed=seed)
    if not run.failures:
        print(f"{fault.id:44}    - not found", flush=True)
        return 0, False
    failure = run.failures[0]
    named = failure.clause in fault.clauses
    instead = "" if named else f"({', '.join(fault.clauses)}) "
    told = f"{failure.history:.120}: {failure.found[0]:.90}"
    print(f"{fault.id:44} {failure.after:4} {failure.clause:9} {instead}{told}", flush=True)
    return failure.after, named


if __name__ == "__main__":
    sys.exit(main())
