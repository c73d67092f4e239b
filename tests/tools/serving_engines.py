"""Judges a whole engine in each form that `sessions.toml` has: `python -m tools.serving_engines engines-vllm`, and
names of forms for some of them.

For each form it writes the probe, starts the server if the engine has one, and judges it. The records stand in
`kvconform-report/serving/vllm-FORM`, with the CPU seconds of reading and of the engine in `cpu.json`. Ends with the
worst exit status."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from urllib.error import URLError
from urllib.request import urlopen

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy reads it once; on a busy machine its threads wait

from kvconform import cli
from kvconform.serving.judge import Judge
from kvconform.serving.player import Player
from tools.floors import ROOT

P, R = ParamSpec("P"), TypeVar("R")

REPORTS = Path("kvconform-report/serving")
PATIENCE = 900
"""Seconds that a server may take to start."""
LAST = 30
"""Seconds that a server may take to end."""


def engines() -> dict[str, dict[str, Any]]:
    """Give the engines that are judged whole, by name."""
    data = tomllib.loads((ROOT / "tests" / "sessions.toml").read_text(encoding="utf-8"))
    table: dict[str, dict[str, Any]] = data["serving"]
    return table


def judge(name: str, form: str) -> int:
    """Judge an engine in one form; give the exit status."""
    engine = engines()[name]
    words, report = engine["forms"][form], REPORTS / f"{name.removeprefix('engines-')}-{form}"
    folder = report / "probe"
    report.mkdir(parents=True, exist_ok=True)
    if status := cli.main(["probe", *shlex.split(words["probe"]), "-o", str(folder)]):
        return status
    run = ["--model", str(folder), *shlex.split(words["run"]), "--report", str(report)]
    with cpu_seconds(report / "cpu.json"):
        if "server" not in engine:
            return cli.main(["run", "--engine", engine["engine"], *run])
        command, ready = f"{engine['server']} {words.get('server', '')}", engine.get("ready", "/v1/models")
        with started(command, ready, folder, report / "server.log") as address:
            return cli.main(["run", "--server", address, *run])


@contextmanager
def cpu_seconds(path: Path) -> Iterator[None]:
    """Write how many CPU seconds went into reading answers, and how many into asking for them. An engine in this
    process computes while it is asked; those of other processes that have ended, such as a server, stand apart."""
    spent, others = {"reading": 0.0, "asking": 0.0}, _others()
    judged, play = Judge.judged, Player.play
    Judge.judged, Player.play = _timed(judged, "reading", spent), _timed(play, "asking", spent)  # type: ignore[method-assign]
    try:
        yield
    finally:
        Judge.judged, Player.play = judged, play  # type: ignore[method-assign]
        spent["others"] = _others() - others
        path.write_text(json.dumps({name: round(seconds, 1) for name, seconds in spent.items()}) + "\n")


def _timed(function: Callable[P, R], name: str, spent: dict[str, float]) -> Callable[P, R]:
    @wraps(function)
    def timed(*args: P.args, **kwargs: P.kwargs) -> R:
        began = time.process_time()
        try:
            return function(*args, **kwargs)
        finally:
            spent[name] += time.process_time() - began

    return timed


def _others() -> float:
    times = os.times()
    return times.children_user + times.children_system


@contextmanager
def started(command: str, ready: str, folder: Path, log: Path) -> Iterator[str]:
    """Start a server; give its address once it answers at the path `ready`. What it prints stands in the log."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    with log.open("wb") as out:
        words = shlex.split(command.format(model=folder, port=port, root=ROOT))
        process = subprocess.Popen(words, stdout=out, stderr=out, start_new_session=True)
        try:
            _await(process, address + ready, log)
            yield f"{address}/v1"
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask a server to end; where it does not, end it. What it started ends with it."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(LAST)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _await(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if process.poll() is not None:
            sys.exit(f"the server ended with {process.returncode}; see {log}")
        try:
            with urlopen(address, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.5)
    sys.exit(f"no answer from {address} in {PATIENCE} s; see {log}")


def main() -> int:
    """Judge the forms that are named, or all."""
    name, *wanted = sys.argv[1:] or [""]
    if name not in engines():
        sys.exit(f"no engine {name!r} in tests/sessions.toml; there are {', '.join(engines())}")
    forms = engines()[name]["forms"]
    if strange := sorted(set(wanted) - set(forms)):
        sys.exit(f"{name} has no form {strange[0]!r}; there are {', '.join(forms)}")
    return max(judge(name, form) for form in wanted or forms)


if __name__ == "__main__":
    sys.exit(main())
