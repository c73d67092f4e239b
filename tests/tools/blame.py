"""Measures blame: of planted bugs and of fresh ones, which clauses fail, which clause is looked at first, and what
the diagnosis names.

`python -m tools.blame [--every N] [--match TEXT]`, run in `tests/`, prints a table and the rates.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tabulate import tabulate


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge, and print the table and the rates."""
    from support.running import blame  # reads the whole suite

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=8, help="judge one planted bug in N (default 8)")
    parser.add_argument("--match", default="", help="judge only bugs with this text in their names")
    parser.add_argument("--undiagnosed", action="store_true", help="leave the diagnosis out")
    parser.add_argument("--failed", action="store_true", help="list the clauses that failed")
    parser.add_argument("--fresh", action="store_true", help="judge only the fresh bugs")
    options = parser.parse_args(arguments)
    every = {"fresh": blame.fresh(options.match)}
    if not options.fresh:
        every["planted"] = blame.planted(options.every, options.match)
    for name, bugs in every.items():
        blames = [blame.judged(bug, not options.undiagnosed) for bug in bugs]
        shown = [name, blame.table(blames), "", *([blame.failed(blames)] if options.failed else [])]
        print("\n".join([*shown, tabulate(blame.rates(blames).items(), disable_numparse=True)]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
