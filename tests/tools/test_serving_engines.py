"""The tool that judges whole engines ends the servers that it started, those too that do not listen."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tools import serving_engines
from tools.floors import ROOT

DEAF = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
)


def test_a_server_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_engines, "LAST", 0.1)
    with subprocess.Popen([sys.executable, "-c", DEAF], stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline().strip() == b"up"
        serving_engines._end(process)
        assert process.poll() is not None


def test_a_kernel_that_is_absent_can_be_imported_and_fails_if_it_is_called() -> None:
    words = "from sgl_kernel.mamba import scan; from sgl_kernel import types; types.uint4; scan(1)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests" / "support" / "absent")}
    run = subprocess.run([sys.executable, "-c", words], env=environment, capture_output=True, text=True)
    assert run.returncode == 1 and "RuntimeError: sgl_kernel.scan is not here" in run.stderr
