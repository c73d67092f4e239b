"""Standard output and error, whatever they are connected to: a command's status never depends on its reader."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from kvconform.message import REWRITE


class _Pipe(io.FileIO):
    """A file whose reader may go away, or whose disk may be full. Text that it does not take is dropped: what the
    command does besides, such as a report, is not lost with it."""

    lost: str = ""
    """Why text was dropped; empty where only its reader went away."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            pass
        except OSError as e:
            self.lost = e.strerror or str(e)
        return memoryview(data).nbytes


class _Text(io.TextIOWrapper):
    """A stream without control characters: text of an adapter or a file may hold some that a terminal would
    obey."""

    def write(self, text: str, /) -> int:
        if not text.replace("\n", "").isprintable():
            from kvreports.safe_text import plain  # seldom needed, and `--help` is quick

            own = REWRITE if text.startswith(REWRITE) else ""
            text = own + plain(text.removeprefix(own))
        return super().write(text)

    def write_painted(self, text: str) -> int:
        """Write our own text, which may switch colours: see `kvreports.terminal`."""
        return super().write(text)


def lost(stream: TextIO | Any) -> str:
    """Give why text of a stream was dropped; empty if none was, or its reader went away."""
    stream.flush()
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return raw.lost if isinstance(raw, _Pipe) else ""


@contextmanager
def lasting() -> Iterator[None]:
    """Let both streams take any text until the command ends: closed pipes, closed streams, poor encodings, texts
    that would command a terminal.

    A stream that a test put in place of the process's own is left alone.
    """
    given = sys.stdout, sys.stderr
    if None in given:
        _open_closed()
    if sys.stdout is sys.__stdout__:
        sys.stdout = _stream(1, sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _stream(2, sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = given


def _open_closed() -> None:
    """Connect closed streams to nothing, so that no file of the command takes their numbers."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)


def _stream(number: int, given: TextIO | None) -> TextIO:
    encoding = given.encoding if given is not None else "utf-8"
    raw = _Pipe(number, "w", closefd=False)
    lines = number == 2 or os.isatty(number)
    return _Text(io.BufferedWriter(raw), encoding, "backslashreplace", line_buffering=lines)
