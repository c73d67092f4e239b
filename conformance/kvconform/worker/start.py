"""Starts a worker's process with its pipes, and ends it with all that it started.

On Linux a supervisor stands between, so that nothing outlives the worker or the harness. On other systems nobody
adopts orphans: what left the worker's session before its parent died survives, and a hung worker outlives a
harness that was killed.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kvadapters import scratch
from kvconform.worker.memory import Family

SUPERVISED = sys.platform == "linux"
SUPERVISOR = Path(__file__).with_name("supervisor.py")
PATIENCE = 10.0
"""Seconds for all to end: a driver may hold a process in the kernel."""

Popen = subprocess.Popen[bytes]


def started(argv: Sequence[str], env: Mapping[str, str] | None) -> tuple[Popen, Family, int]:
    """Start a command in its own session; give the process that ends as it does, its family and its pid. Raises
    OSError, ValueError."""
    if not SUPERVISED:
        popen = _popen(argv, env)
        return popen, Family(popen.pid), popen.pid
    told, tells = os.pipe()
    with open(told, "rb") as words:
        try:
            python = [sys.executable, "-I", "-S", str(SUPERVISOR), str(os.getpid()), str(tells)]
            popen = _popen([*python, *argv], env, pass_fds=(tells,))
        finally:
            os.close(tells)
        family = Family(popen.pid, without_itself=True)
        try:
            pid = told_pid(words.read().decode())
        except BaseException:
            end(popen, family, popen.pid)
            raise
    return popen, family, pid


def told_pid(words: str) -> int:
    """Give the pid that a supervisor told, as `123 `. If its worker could not be started, the worker said why, as
    `-why` and a new line, before the pid or behind it. Raises OSError with that."""
    why = re.search("-(.*)\n", words)
    if why or not words:
        raise OSError(why[1] if why else "its supervisor ended")
    return int(words)


def _popen(argv: Sequence[str], env: Mapping[str, str] | None, **more: Any) -> Popen:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        argv, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, env=env, start_new_session=True, **more
    )


def end(popen: Popen, family: Family, pid: int) -> None:
    """End the process and all its relatives, reap it, close its pipes. Remove its temporary folders. `pid` leads
    the group of the command."""
    if popen.poll() is None:
        family.look()
    if SUPERVISED:
        popen.terminate()  # it ends all others before itself
        _wait(popen)
    family.kill()
    if not SUPERVISED or popen.poll() in (None, -signal.SIGKILL):  # or somebody else ended the supervisor
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        popen.kill()
        _wait(popen)
    scratch.remove(pid)
    for pipe in (popen.stdin, popen.stdout, popen.stderr):
        if pipe is not None:
            pipe.close()


def _wait(popen: Popen) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        popen.wait(PATIENCE)
