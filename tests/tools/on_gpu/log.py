"""What a session leaves: `log.txt`, all that was said; `parts.json`, the state of each part; and a packed copy."""

from __future__ import annotations

import json
import os
import sys
import tarfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

EVERY = 15.0
"""Seconds after which what a part has left is packed again while it runs: a session may be killed."""


class Log:
    """The folder of records. Everything is on disk as soon as it is known."""

    def __init__(self, folder: Path, pack: Path | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self._pack, self._packed_at = folder, pack, 0.0
        self._packing = threading.Lock()  # a part speaks while another's state is noted
        self._file = (folder / "log.txt").open("a", encoding="utf-8")

    def __enter__(self) -> Log:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()
        self.packed()

    def write(self, text: str) -> None:
        """Write what a process says to the log, and to standard output."""
        self._file.write(text)
        self._file.flush()
        sys.stdout.write(text)
        sys.stdout.flush()
        if time.monotonic() - self._packed_at > EVERY:
            self.packed()

    def say(self, line: str) -> None:
        """Write a line of the session itself."""
        self.write(f"on_gpu: {line}\n")

    def keep(self, states: Sequence[dict[str, Any]]) -> None:
        """Write the state of each part, in one step."""
        text = json.dumps({"parts": states}, indent=1) + "\n"
        new = self.folder / "parts.new"
        new.write_text(text, encoding="utf-8")
        new.replace(self.folder / "parts.json")

    def packed(self) -> None:
        """Pack the folder into one file, in one step, if that is wanted."""
        if self._pack is None:
            return
        with self._packing:
            self._pack.parent.mkdir(parents=True, exist_ok=True)
            new = self._pack.with_name(f"new-{os.getpid()}-{self._pack.name}")
            with tarfile.open(new, "w:gz") as file:
                file.add(self.folder, self.folder.name)
            new.replace(self._pack)
            self._packed_at = time.monotonic()
