"""Stands between the harness and a worker, on Linux, so that nothing of a worker outlives it or the harness.

It adopts what the worker's descendants leave behind, whatever session they are in: Linux gives orphans to the
nearest subreaper. It ends all of them when the worker ends, when it is told to, and when the harness is gone; the
worker's end becomes its own. It runs as a file, without site-packages: `python -I -S supervisor.py HARNESS STARTED
COMMAND...`. On the descriptor STARTED it tells the worker's pid, and why the command cannot be started.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from collections.abc import Iterator
from typing import NoReturn

SET_PARENT_DEATH_SIGNAL, SET_CHILD_SUBREAPER = 1, 36
"""Options of `prctl`."""

HARNESS_GONE = signal.SIGUSR1
"""Also sent when only the thread that started this process ends, which is no reason to end."""


def main(harness: int, started: int, command: list[str]) -> NoReturn:
    """Start the worker, wait for its end, end what it left, and end as it did."""
    signal.signal(signal.SIGTERM, lambda *_: _end(signal.SIGTERM))
    signal.signal(HARNESS_GONE, lambda *_: None if os.getppid() == harness else _end(signal.SIGKILL))
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    _prctl(SET_CHILD_SUBREAPER, 1)
    signal_when_parent_ends(HARNESS_GONE)
    if os.getppid() != harness:
        sys.exit(1)
    worker = _worker(command, started)
    os.write(started, f"{worker} ".encode())
    for pipe in (0, 1, 2, started):
        os.close(pipe)  # the worker's end of each must be the only one
    _end_as(_wait_for(worker))


def signal_when_parent_ends(number: int) -> None:
    """Have this process sent a signal when its parent ends, or the parent's thread that started it. Linux alone."""
    _prctl(SET_PARENT_DEATH_SIGNAL, number)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _worker(command: list[str], started: int) -> int:
    """Start it in a session of its own; give its pid. Tell an error in words, behind a minus."""
    pid = os.fork()
    if pid:
        return pid
    try:
        for number in (signal.SIGTERM, HARNESS_GONE, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        signal_when_parent_ends(signal.SIGKILL)
        os.set_inheritable(started, False)
        os.execvp(command[0], command)
    except OSError as e:
        os.write(started, f"-{e.strerror}\n".encode())
    os._exit(127)


def _wait_for(worker: int) -> int:
    """Reap orphans until the worker ends; give its status."""
    while True:
        pid, status = os.wait()
        if pid == worker:
            return status


def _end_as(status: int) -> NoReturn:
    if os.WIFSIGNALED(status):
        _end(os.WTERMSIG(status))
    _end_descendants()
    os._exit(os.WEXITSTATUS(status))


def _end(number: int) -> NoReturn:
    """End all descendants, then this process by a signal."""
    _end_descendants()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)


def _end_descendants() -> None:
    """Kill all, again and again until none is left: they may start others meanwhile."""
    while True:
        for pid in _descendants():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.wait()
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return


def _descendants() -> list[int]:
    """All descendants: children after their parents."""
    children: dict[int, list[int]] = {}
    for pid, parent in _processes():
        children.setdefault(parent, []).append(pid)
    found = [os.getpid()]
    for pid in found:
        found += children.get(pid, ())
    return found[1:]


def _processes() -> Iterator[tuple[int, int]]:
    """Each process of the machine, and its parent."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            yield int(name), int(file.read().rpartition(b")")[2].split()[1])


if __name__ == "__main__":
    _harness, _started, *_command = sys.argv[1:]
    main(int(_harness), int(_started), _command)
