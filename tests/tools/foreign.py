"""Judges every foreign implementation whole: `python -m tools.foreign [NAME ...] [OPTION OF kvconform run ...]`.

Ends with status 1 if one does not conform. An implementation whose package is not installed is named, and left out.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from tabulate import tabulate

from support.engines.foreign import FOREIGN, Foreign

TESTS = str(Path(__file__).parents[1])
"""Where `support` is imported from, also in the processes of a run."""


def judged(foreign: Foreign, options: Sequence[str]) -> str:
    """What a run says of its result; begins with FAIL if that is not that it conforms."""
    if foreign.needs and find_spec(foreign.needs) is None:
        return f"left out: {foreign.needs} is not installed"
    command = [sys.executable, "-m", "kvconform", "run", foreign.name, *options]
    env = os.environ | {"PYTHONPATH": os.pathsep.join((TESTS, os.environ.get("PYTHONPATH", "")))}
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, env=env)
    result = next((line.partition(": ")[2] for line in run.stdout.splitlines() if ": Conforms (" in line), "")
    return result if run.returncode == 0 and result else f"FAIL, status {run.returncode}\n{run.stdout}"


def main(arguments: Sequence[str]) -> int:
    """Judge those that are named, or all, and print a table."""
    names = [a for a in arguments if not a.startswith("-")]
    options = [a for a in arguments if a.startswith("-")]
    chosen = [f for f in FOREIGN if not names or f.adapter in names]
    rows = [(f.adapter, ", ".join(f.chapters), judged(f, options)) for f in chosen]
    print(tabulate(rows, ("implementation", "is here for", "result")))
    return int(any(result.startswith("FAIL") for _, _, result in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
