"""The long log that speed is measured by: it is right, and what the judge keeps does not grow with its length."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

from kvconform.steps.judge import Judge
from kvconform.steps.log_file import opened
from tools import long_log


def kept(log: Path) -> tuple[int, Judge]:
    """Judge a log: give the bytes that the judge keeps at its end, and the judge."""
    tracemalloc.start()
    with opened(log) as (header, lines):
        judge = Judge(header)
        assert judge.judge(lines) is None
        size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size, judge


def test_what_is_kept_is_bounded_by_what_is_alive(tmp_path: Path) -> None:
    assert long_log.main([str(tmp_path / "short.jsonl"), "--steps", "300"]) == 0
    short, judge = kept(tmp_path / "short.jsonl")
    assert (judge.counts["steps"], len(judge.alive), judge.counts["hits"] > 10) == (300, 32, True)
    long, judge = kept(long_log.written(tmp_path / "long.jsonl", 900))
    assert judge.counts["requests"] > 70 and judge.counts["evictions"] > 100
    assert long < 1.1 * short
