"""The benchmark that needs no device runs: it stands on inner parts of the CuPy runtime."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

LAUNCHES = Path(__file__).parents[2] / "bench" / "bench_launches.py"


def test_the_hosts_time_a_launch_is_measured(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    spec = importlib.util.spec_from_file_location("bench_launches", LAUNCHES)
    assert spec is not None and spec.loader is not None
    bench: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    monkeypatch.setattr(bench, "ROUNDS", 2)
    monkeypatch.setattr(bench, "CALLS", 1)
    bench.main()
    table = capsys.readouterr().out
    assert "a launch of 17 arguments" in table and "captured step of 128 sequences, in pages" in table
