"""Logs of steps for tests: events, written to a file and judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kvconform.steps.verdict import Verdict, judged

HEADER: dict[str, Any] = {"kvsteps": 1, "pages": 8, "reserved": [0], "groups": [{"block": 4, "view": "full"}]}

WHOLE: list[dict[str, Any]] = [
    {"add": "a", "tokens": [1, 2, 3, 4, 5], "salt": "x"},
    {"step": {"a": {"start": 0, "n": 3, "tables": [[1, 2]]}}},
    {"step": {"a": {"start": 3, "n": 2}}},
    {"sampled": {"a": [6]}},
    {"add": "b", "tokens": [1, 2, 3, 4, 9], "salt": "x"},
    {"step": {"a": {"start": 5, "n": 3, "drafts": [7, 8]}, "b": {"start": 4, "n": 1, "tables": [[1, 3]]}}},
    {"sampled": {"a": [7, 3], "b": [4]}},
    {"left": 4},
    {"fork": "b", "as": "c"},
    {"copy": [[3, 4]]},
    {"step": {"a": {"start": 7, "n": 1}, "b": {"start": 5, "n": 1}, "c": {"start": 5, "n": 1, "tables": [[1, 4]]}}},
    {"sampled": {"a": [1], "b": [2], "c": [3]}},
    {"free": "a"},
    *({"finish": name} for name in "bc"),
    *({"free": name} for name in "bc"),
    {"step": {"a": {"start": 4, "n": 5, "tables": [[1, 4, 3]]}}},
    {"finish": "a"},
    {"free": "a"},
    {"left": 7},
]
"""A log in which nothing is wrong: hits, drafts, a fork with its copy, a preemption, pages that are taken again."""


def write(path: Path, *events: Any, header: Any = HEADER) -> Path:
    """Write a log."""
    path.write_text("".join(json.dumps(line) + "\n" for line in (header, *events)), encoding="utf-8")
    return path


def verdict(path: Path, *events: Any, header: Any = HEADER) -> Verdict:
    """Write a log and judge it."""
    return judged(write(path, *events, header=header))
