"""`python -m tools.sanitizers TOOL [--planted] [--every N]`.

Exit status: 0 nothing found, or all planted bugs caught; 1 something found, or a planted bug missed; 2 usage; 3 the
watched process failed, or did nothing; 4 the tool is missing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvspec.errors import CannotRun
from tools.sanitizers import findings
from tools.sanitizers.checks import CHECKS, TOOLS, Check
from tools.sanitizers.findings import Report
from tools.sanitizers.planted import Planted
from tools.sanitizers.planted_bugs import BUGS

TESTS = Path(__file__).parents[2]
"""The folder of `tools`, where the watched process finds it too."""

DEADLINE = 900.0
"""Seconds a watched process may take; a run takes one or two minutes."""

SAID = "report: "
DONE = "replayed: "


@dataclass
class Watched:
    """What became of a watched process."""

    reports: list[Report]
    done: str = ""
    """Its last line, which counts what it replayed; none if it did not come to its end."""
    last_words: str = ""

    @property
    def idle(self) -> bool:
        """Whether it came to its end, and had done nothing."""
        return self.done.startswith("0 ")


def watch(check: Check, bug: Planted | None = None, show: bool = False, every: int = 1) -> Watched:
    """Run the process under the tool, and read what both said. Raises CannotRun."""
    text = bug.plant(check.text) if bug else check.text
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder)
        python = check.command(logs, bug is not None)  # a tool that is missing is told before anything is compiled
        check.prepare(text)
        command = [*python, "-m", "tools.sanitizers.watched_process", check.name, str(every)]
        watched = _followed([*command, *([bug.name] if bug else [])], check, show)
        watched.reports += check.found(logs)
    return watched


def _followed(command: Sequence[str], check: Check, show: bool) -> Watched:
    watched, others = Watched([]), []
    path = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
    how: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, **how) as process:
        assert process.stdout is not None
        overdue = threading.Timer(DEADLINE, process.kill)
        overdue.start()
        for line in map(str.strip, process.stdout):
            if line.startswith(SAID):
                watched.reports.append(findings.from_json(line.removeprefix(SAID)))
            elif line.startswith(DONE):
                watched.done = line.removeprefix(DONE)
            else:
                others.append(line)
                if show:
                    print(f"{check.name}: {line}", flush=True)
        overdue.cancel()
    watched.last_words = "; ".join(others[-3:])
    return watched


def clean(check: Check, every: int) -> int:
    """The kernels as they are, on one in so many traces: nothing may be found."""
    watched = watch(check, show=True, every=every)
    for report in watched.reports:
        print(f"{check.name}: FOUND {report.named(check.text)}")
    if watched.reports:
        return 1
    if not watched.done or watched.idle:
        print(f"{check.name}: the watched process did not come to its end: {watched.last_words}")
        return 3
    print(f"{check.name}: nothing found in {watched.done}")
    return 0


def planted(check: Check) -> int:
    """Bugs that are known: each must be found, and named."""
    return max([_planted(check, bug) for bug in BUGS[check.name]])


def _planted(check: Check, bug: Planted) -> int:
    watched = watch(check, bug)
    right = [r for r in watched.reports if r.kind == bug.kind]
    shown = (right or watched.reports)[:1]
    found = shown[0].named(bug.plant(check.text)) if shown else f"nothing ({watched.last_words})"
    verdict = "caught" if right else "NOT CAUGHT"
    print(f"{check.name}: {verdict}: {bug.name}: expected {bug.kind}; found {found}", flush=True)
    return 0 if right else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks of one tool; gives the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.sanitizers", description="The GPU code under a tool.")
    parser.add_argument("tool", choices=tuple(TOOLS))
    parser.add_argument("--planted", action="store_true", help="plant known bugs, which must be found")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="replay one trace in N (1: all of them)")
    options = parser.parse_args(arguments)
    begun = time.monotonic()
    try:
        checks = [CHECKS[name] for name in TOOLS[options.tool]]
        status = max(planted(c) if options.planted else clean(c, max(1, options.every)) for c in checks)
    except CannotRun as e:
        print(f"{options.tool} cannot run here: {e}", file=sys.stderr)
        return 4
    print(f"{options.tool}: {time.monotonic() - begun:.0f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
