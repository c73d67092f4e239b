"""Speed and memory of the harness: replay and judge in process, the first line, and a whole run of the reference.

Machines are noisy, so each figure stands beside one measured in the same run: a fixed piece of Python work.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kvadapters.reference import Reference
from kvconform.generate import frozen_covers
from kvconform.judge import trial
from kvreports import json_file
from kvspec.contract import CHAPTERS, description
from kvspec.records.run import Record
from kvspec.session.driver import Session

YARDSTICK = 200_000
MOST = 520
"""Most traces of a chapter's last cover that are replayed."""


def yardstick() -> float:
    """Time a fixed piece of work: how fast this machine is right now."""
    began = time.perf_counter()
    sum(len(str(i)) for i in range(YARDSTICK))
    return time.perf_counter() - began


def in_process(chapter: str) -> tuple[int, float]:
    """Replay a chapter's operations twice, judged at level storage; give the operations and seconds."""
    adapter, traces = description(Reference().describe()), list(frozen_covers.load(chapter)[-1].traces())[:MOST]
    began = time.perf_counter()
    done = sum(len(trial.run(t, Session(Reference()), adapter).steps) for t in traces)
    return done, time.perf_counter() - began


def first_line() -> float:
    """Time the command line until its first output."""
    began = time.perf_counter()
    with subprocess.Popen([sys.executable, "-m", "kvconform", "run", "reference", "--chapter", "growing"],
                          stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as run:  # fmt: skip
        assert run.stderr is not None
        run.stderr.read(1)
        took = time.perf_counter() - began
        run.terminate()
    return took


def whole_run(adapter: str) -> Record:
    """Give the record of a run at the default number of traces."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "kvconform", "run", adapter, "--report", folder],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        return json_file.load(Path(folder) / "record.json", Record)


def main() -> None:
    unit = yardstick()
    print("replay and judge in process")
    for chapter in CHAPTERS:
        if frozen_covers.load(chapter):
            done, took = in_process(chapter)
            print(f"{chapter:10} {done / took:8,.0f} operations/s ({took / done / unit * 1e3:.2f} milliyards each)")
    times = sorted(first_line() for _ in range(5))
    print(f"first line of the command line: {times[2]:.3f} s ({times[2] / unit:.1f} yards)")
    for adapter in sys.argv[1:] or ("reference", "opencl"):
        unit, record = yardstick(), whole_run(adapter)
        peak = sum(record.memory.values()) / 2**20
        print(f"run {adapter}: {record.seconds:.1f} s ({record.seconds / unit:,.0f} yards), {peak:.0f} MiB peak")
    print(f"a yard is {YARDSTICK:,} turns of a Python loop: {unit:.3f} s")


if __name__ == "__main__":
    main()
