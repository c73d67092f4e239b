"""The tool that lives random lives: what it counts, and that it tells a life that is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kvconform.steps.log_file import Group
from kvspec.steps.view import view
from tools import lives

HEADER = {"kvsteps": 1, "engine": "x", "pages": 8, "groups": [{"block": 4, "view": "full"}]}


class Life:
    """A life of one request of three tokens. That of seed 3 computes a token that it does not have, and that of
    seed 5 fails."""

    notices = (RuntimeError,)

    def __init__(self, seed: int, log: Path, shape: str | None) -> None:
        self.seed, self.log, self.shape = seed, log, shape or "full"
        self.scheduler = SimpleNamespace(step_log=SimpleNamespace(file=log.open("w", encoding="utf-8")))

    def live(self, steps: int) -> None:
        """Write the log."""
        if self.seed == 5:
            self.write(HEADER)
            raise RuntimeError("no page is free")
        step = {"a": {"start": 0, "n": 4 if self.seed == 3 else 3, "tables": [[0]]}}
        self.write(HEADER, {"add": "a", "tokens": [1, 2, 3]}, {"step": step})

    def write(self, *events: Any) -> None:
        """Write lines."""
        self.scheduler.step_log.file.writelines(json.dumps(event) + "\n" for event in events)


@pytest.mark.parametrize(
    ("of", "rows"), [("full", 1 + 2 + 3 + 4), ("window 2", 1 + 2 + 2 + 2), ("chunk 3", 1 + 2 + 3 + 1)]
)
def test_a_query_reads_its_own_row_and_those_that_its_view_has(of: str, rows: int) -> None:
    assert lives.seen(Group(4, view(of), 0), 0, 4) == rows


def test_lives_are_counted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(lives, "life_of", lambda engine: Life)
    assert lives.main(["vllm", "--lives", "2", "--seed", "1"]) == 0
    assert capsys.readouterr().out == (
        "2 lives: 2 of full\n2 requests, 2 steps, 6 rows written, 12 rows read\nwrong: 0\n"
    )


@pytest.mark.parametrize(("seed", "why"), [(3, "STEP-23"), (5, "RuntimeError: no page is free")])
def test_a_life_that_is_wrong_is_told(
    seed: int, why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lives, "life_of", lambda engine: Life)
    assert lives.main(["sglang", "--lives", "1", "--seed", str(seed), "--shape", "full"]) == 1
    said = capsys.readouterr().out
    assert said.startswith(f"seed {seed}, full: ") and why in said and "wrong: 1" in said
