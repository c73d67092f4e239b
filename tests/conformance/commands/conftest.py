"""What tests of commands share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.running import judging


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to work in, from which the fakes are in reach; signals are left as they were."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", judging.fakes.environment()["PYTHONPATH"])
    before = signal.getsignal(signal.SIGTERM)
    yield tmp_path
    signal.signal(signal.SIGTERM, before)
