"""Temporary folders of a worker. A worker is killed where it stands, so the harness removes what it left."""

from __future__ import annotations

import atexit
import os
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir, mkdtemp


def prefix(pid: int | None = None) -> str:
    """Give what the names of a process's temporary folders begin with, for `mkdtemp` and `TemporaryDirectory`.
    Without a pid it is for this process."""
    return f"kvconform-worker-{pid or os.getpid()}-"


def folder() -> str:
    """Make a temporary folder for as long as this process lives."""
    made = mkdtemp(prefix=prefix())
    atexit.register(rmtree, made, ignore_errors=True)
    return made


def remove(pid: int) -> None:
    """Remove the temporary folders of a process that has ended."""
    for left in Path(gettempdir()).glob(f"{prefix(pid)}*"):
        rmtree(left, ignore_errors=True)
