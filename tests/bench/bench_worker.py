"""Times one question and its answer: prints medians, and the ratio to bare pipes.

The bare pipes carry as many bytes each way between two Python processes that do nothing with them.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import numpy as np

from kvconform.worker.client import Worker, python_worker
from kvspec.contract import Cache, Lengths, Pair, Readable
from kvspec.geometry import Array, Config
from kvspec.wire import framing

ROUNDS = 2000
CONFIG = Config(kv_heads=8, k_dim=64, v_dim=64, dtype="f16")
ROWS = 32
"""Rows of 2 KiB: 64 KiB in all."""

PONG = """
import os, sys
ask, answer = int(sys.argv[1]), bytes(int(sys.argv[2]))
while True:
    got = 0
    while got < ask:
        data = os.read(0, 1 << 18)
        if not data:
            sys.exit()
        got += len(data)
    sent = 0
    while sent < len(answer):
        sent += os.write(1, answer[sent:])
"""


class Sink:
    """Keeps only the last append and returns it: as little work as an adapter can do."""

    def describe(self) -> Mapping[str, Any]:
        return {"name": "sink", "chapters": {"growing": "visible"}}

    def open(self, kind: str, config: Config) -> Cache:
        return Sink()  # type: ignore[return-value]

    def append(self, keys: Array, values: Array) -> None:
        self.last = Pair(keys, values)

    def read(self, what: Readable) -> Pair | None:
        return self.last

    def lengths(self) -> Lengths:
        return Lengths(0)


def median(work: Callable[[], object]) -> float:
    """Give the median in microseconds."""
    times = []
    for _ in range(ROUNDS):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return statistics.median(times) * 1e6


def bare(question: int, answer: int) -> float:
    """Send the same bytes through bare pipes."""
    argv = [sys.executable, "-c", PONG, str(question), str(answer)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as pong:
        assert pong.stdin is not None and pong.stdout is not None
        into, out, asked = pong.stdin.fileno(), pong.stdout.fileno(), bytes(question)

        def play() -> None:
            sent = got = 0
            while sent < question:
                sent += os.write(into, asked[sent:])
            while got < answer:
                got += len(os.read(out, 1 << 18))

        taken = median(play)
        pong.stdin.close()
    return taken


def measure(worker: Worker, name: str, head: dict[str, Any], rows: dict[str, Array], observe: list[str]) -> None:
    """Print a line."""
    begin = {"op": "begin", "kind": "growing", "config": CONFIG.to_json(), "observe": observe}
    worker.ask(begin)
    answer, arrays = worker.ask(head, rows)
    sizes = len(framing.encode({"id": 1, **head}, rows)), len(framing.encode({"id": 1, **answer}, arrays))
    taken, floor = median(lambda: worker.ask(head, rows)), bare(*sizes)
    there, back = (f"{n / 1024:.1f}" for n in sizes)
    print(f"{name:28} {there:>7} {back:>7} {taken:>9.0f} {floor:>9.0f} {taken / floor:>6.1f}")


def main() -> None:
    shape = CONFIG.shape("k", ROWS)
    rows = {"keys": np.ones(shape, np.float16), "values": np.ones(shape, np.float16)}
    append = {"op": "append", "n": ROWS}
    print(f"{'':28} {'KiB to':>7} {'KiB fro':>7} {'us':>9} {'bare us':>9} {'ratio':>6}")
    folder = os.path.dirname(os.path.abspath(__file__))
    path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
    with Worker(python_worker("bench_worker:Sink"), env=os.environ | {"PYTHONPATH": path}) as worker:
        measure(worker, "nothing", {"op": "view", "cache": "Z"}, {}, [])
        measure(worker, "append 64 KiB, answer small", append, rows, [])
        measure(worker, "append 64 KiB, 64 KiB back", append, rows, ["history"])


if __name__ == "__main__":
    main()
