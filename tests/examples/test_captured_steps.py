"""The example of captured steps runs, and prints what it says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "examples" / "captured_steps.py"


def test_only_the_window_hides_rows_and_only_of_long_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(SCRIPT), run_name="__main__")
    _, *lines = capsys.readouterr().out.splitlines()
    off = {kind: [float(number) for number in numbers] for kind, *numbers in map(str.split, lines)}
    assert off["growing"] == off["pages"] == [0, 0, 0]
    short, *long = off["windows"]
    assert short == 0 and min(long) > 0.1
