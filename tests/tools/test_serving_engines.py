"""The tool that judges whole engines ends the servers that it started, those too that do not listen."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tools import serving_engines

DEAF = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
)


def test_a_server_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_engines, "LAST", 0.1)
    with subprocess.Popen([sys.executable, "-c", DEAF], stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline().strip() == b"up"
        serving_engines._end(process)
        assert process.poll() is not None
