"""Every adapter's parcels into every other: `python -m tools.interchange [ADAPTER ...]`, run in `tests/`.

Prints a table: who packs first in rows, who unpacks first in columns, and how many clauses hold: those of
MOVE, and those of ROW, on rows in a form. Ends with status 1 if a pair does not conform.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tabulate import tabulate

ADAPTERS = ("reference", "opencl", "opencl-fast", "cuda-cpu")


def crossed(first: str, second: str) -> tuple[bool, str]:
    """Judge a pair: whether it conforms, and how many clauses pass of those that are claimed."""
    from support.engines.interchange import name

    return judged(name(first, second), "parcels", "forms")


def judged(adapter: str, *chapters: str) -> tuple[bool, str]:
    """Judge an adapter by MOVE, or by these chapters: whether it conforms, and how many clauses pass of those that
    are claimed."""
    import kvconform

    seen = kvconform.run(adapter, chapters=[*chapters] or ["parcels"], quick=True, processes=1)
    passed, claimed = seen.summary.get("PASS", 0), sum(n for v, n in seen.summary.items() if v != "NOT_CLAIMED")
    return seen.conforms, f"{passed} of {claimed}"


def main(names: Sequence[str]) -> int:
    """Judge all pairs, and print the table."""
    os.environ["PYTHONPATH"] = os.pathsep.join((str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")))
    chosen = tuple(names) or ADAPTERS
    results = {(a, b): crossed(a, b) for a in chosen for b in chosen}
    rows = [
        (a, *(results[a, b][1] if results[a, b][0] else f"FAIL {results[a, b][1]}" for b in chosen)) for a in chosen
    ]
    print(tabulate(rows, ("packs first", *chosen)))
    return int(not all(conforms for conforms, _ in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
