"""Prints the table of faults that are planted in the example engine: after how many requests of random lives each
is seen, and how. `PYTHONPATH=../examples python -m tools.engine_faults [ID ...]`, run in `tests/`; an id may be
cut short."""

from __future__ import annotations

import sys

from hostile.engine_faults import FAULTS
from support import serving

REQUESTS = 500


def main(asked: list[str]) -> int:
    """Print a line for each fault; 1 if one was not seen."""
    chosen = [fault for fault in FAULTS.values() if fault.id.startswith(tuple(asked or [""]))]
    unseen = 0
    for fault in chosen:
        with fault.planted():
            wrong = serving.lives(REQUESTS)
        unseen += wrong is None
        after = f"{wrong.requests:4} {wrong.words:.140}" if wrong else "   - not seen"
        print(f"{fault.id:44} {after}", flush=True)
    print(f"{len(chosen)} faults, {unseen} not seen within {REQUESTS} requests")
    return int(unseen > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
