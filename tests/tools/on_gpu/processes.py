"""The processes of parts: each says what it says, and is interrupted where its time is over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

GRACE = 20.0
"""Seconds that an interrupted process has for writing its record, before it and its workers are killed."""


class Ended(NamedTuple):
    """How a process ended: its status, negative for a signal, and whether its time was over."""

    status: int
    cut: bool


@dataclass(frozen=True)
class Processes:
    """Starts `python -m WORDS` in a folder; `write` gets all that it says."""

    folder: Path
    environment: Mapping[str, str]
    write: Callable[[str], None]
    grace: float = GRACE

    def __call__(self, words: Sequence[str], seconds: float) -> Ended:
        """Run it for so many seconds at most. A KeyboardInterrupt ends it too."""
        if (
            signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        ):  # as behind nohup: it would not feel an interrupt either
            signal.signal(signal.SIGINT, signal.default_int_handler)
        process = subprocess.Popen(
            [sys.executable, "-m", *words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        assert process.stdout is not None
        reader = threading.Thread(target=self._read, args=(process.stdout,), daemon=True)
        reader.start()
        try:
            return Ended(*self._waited(process, seconds))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # workers that outlive it
            process.wait()
            reader.join(1.0)

    def _waited(self, process: subprocess.Popen[str], seconds: float) -> tuple[int, bool]:
        try:
            return process.wait(seconds), False
        except subprocess.TimeoutExpired:
            return self._interrupted(process), True
        except KeyboardInterrupt:
            self._interrupted(process)
            raise

    def _interrupted(self, process: subprocess.Popen[str]) -> int:
        process.send_signal(signal.SIGINT)
        try:
            return process.wait(self.grace)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def _read(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self.write(line)
