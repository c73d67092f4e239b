"""The tool that judges whole engines ends the servers that it started, those too that do not listen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from kvconform.serving.judge import Judge
from tools import serving_engines
from tools.floors import ROOT

DEAF = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
)
PARENT = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, '-c', {DEAF!r}], stdout=subprocess.DEVNULL)
print(child.pid, flush=True)
time.sleep(600)
"""


@contextmanager
def a_process(words: str) -> Iterator[tuple[subprocess.Popen[bytes], bytes]]:
    """Start a process as the tool does; give it and its first line."""
    python = [sys.executable, "-c", words]
    with subprocess.Popen(python, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout
        yield process, process.stdout.readline().strip()


def test_a_server_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_engines, "LAST", 0.1)
    with a_process(DEAF) as (process, line):
        assert line == b"up"
        serving_engines._end(process)
        assert process.poll() is not None


def test_what_a_server_started_ends_with_it() -> None:
    with a_process(PARENT) as (process, line):
        child = psutil.Process(int(line))
        serving_engines._end(process)
        psutil.wait_procs([child], timeout=10)
        assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_cpu_seconds_of_reading_stand_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([1.0, 3.5])
    monkeypatch.setattr(serving_engines.time, "process_time", lambda: next(clock))
    judged, judge = Judge.judged, Judge.__new__(Judge)
    judge.past = []
    with serving_engines.cpu_seconds(tmp_path / "cpu.json"):
        assert judge.judged([]) == []
    found = json.loads((tmp_path / "cpu.json").read_text())
    assert (found["reading"], found["asking"]) == (2.5, 0.0) and "others" in found
    assert Judge.judged is judged


@pytest.mark.parametrize(
    "words",
    [
        "from sgl_kernel.mamba import scan; from sgl_kernel import types; types.uint4; scan(1)",
        "import torchvision.transforms.v2.functional as images; images.resize(1)",
    ],
)
def test_what_is_absent_can_be_imported_and_fails_if_it_is_called(words: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests" / "support" / "absent")}
    run = subprocess.run([sys.executable, "-c", words], env=environment, capture_output=True, text=True)
    assert run.returncode == 1 and "is not here: SGLang" in run.stderr, run.stderr
