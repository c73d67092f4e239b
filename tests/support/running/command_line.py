"""`kvconform` as the tests call it: in this process, or as a process where signals, pipes or imports are tested."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from unittest import mock

from kvconform import cli
from kvreports import json_file
from kvspec.records.run import Record
from support import fakes


def command(*arguments: str | Path) -> list[str]:
    """The command line of kvconform."""
    return [sys.executable, "-m", "kvconform", *map(str, arguments)]


def kvconform(*arguments: str | Path, cwd: Path | None = None, stdin: str = "") -> CompletedProcess[str]:
    """Run a command to its end in this process, with the fakes in reach of the workers that it starts."""
    said = list(map(str, arguments))
    fakes_in_reach = mock.patch.dict(os.environ, fakes.environment())
    with fakes_in_reach, contextlib.chdir(cwd or Path.cwd()), _streams(stdin) as (out, err):
        status = cli.main(said)
    return CompletedProcess(said, status, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _streams(stdin: str) -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """Standard output and standard error as text."""
    given = io.TextIOWrapper(io.BytesIO(stdin.encode()))
    out, err = io.StringIO(), io.StringIO()
    with mock.patch.object(sys, "stdin", given), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield out, err


def run(adapter: str, *arguments: str | Path) -> tuple[int, Record, str]:
    """`kvconform run`: exit status, the record from standard output, standard error."""
    done = kvconform("run", adapter, "--format", "json", *arguments)
    assert done.stdout, done.stderr
    return done.returncode, json_file.loads(done.stdout, Record), done.stderr
