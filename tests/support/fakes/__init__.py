"""Fakes: adapters and processes that do something wrong, and how they are run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent


def environment(*folders: str) -> dict[str, str]:
    """The environment of a worker that finds these fakes, and whatever this process finds."""
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    path = [str(HERE.parents[1]), *folders, *filter(None, sys.path)]
    return ours | {"PYTHONPATH": os.pathsep.join(path)}


def adapter(name: str) -> list[str]:
    """The command line that serves the fake adapter of this name."""
    return [sys.executable, "-m", "kvadapters.serve", f"support.fakes.lies:{name}"]


def process(name: str) -> list[str]:
    """The command line of the process of this name."""
    return [sys.executable, str(HERE / "processes.py"), name]
