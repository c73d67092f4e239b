"""A process that leaves others behind, on the wire or not: `python descendants.py LEAVES ENDS`.

LEAVES says what it leaves, ENDS how it goes on once it has answered one question.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress

FOREVER = 600.0


def child() -> None:
    """A child in the same session."""
    subprocess.Popen(["sleep", "60"])


def child_apart() -> None:
    """A child in a session of its own."""
    subprocess.Popen(["sleep", "60"], start_new_session=True)


def forked(then: Callable[[], None]) -> None:
    """A child in a session of its own, whose parent ends at once."""
    if os.fork():
        os.wait()
        return
    os.setsid()
    if os.fork() == 0:
        then()
        sleep()
    os._exit(0)


def orphan() -> None:
    """A daemon: its parent has ended, its session is its own."""
    forked(lambda: None)


def stubborn_orphan() -> None:
    """A daemon that ignores all signals that can be ignored."""

    def ignore() -> None:
        for number in range(1, signal.NSIG):
            with suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_IGN)

    forked(ignore)


def stopped_orphan() -> None:
    """A daemon that is stopped."""
    forked(lambda: os.kill(os.getpid(), signal.SIGSTOP))


def greedy_orphan() -> None:
    """A daemon that holds 200 MiB."""

    def eat() -> None:
        held = bytearray(200 << 20)
        held[:: 1 << 10] = bytes([1]) * len(held[:: 1 << 10])
        time.sleep(FOREVER)

    forked(eat)


def restless_orphan() -> None:
    """A daemon that hands over to a new process a hundred times a second."""

    def hand_over() -> None:
        until = time.monotonic() + FOREVER
        while time.monotonic() < until:
            time.sleep(0.01)
            if os.fork():
                os._exit(0)
            os.setsid()

    forked(hand_over)


def many_orphans() -> None:
    """Forty daemons."""
    for _ in range(40):
        orphan()


def a_line_of_orphans() -> None:
    """A daemon of a daemon of a daemon."""
    forked(lambda: forked(lambda: forked(lambda: None)))


def orphan_with_its_pipes() -> None:
    """A daemon that shares the pipes of the worker; all others here do so too, but it writes to them."""

    def write() -> None:
        while True:
            time.sleep(0.2)
            os.write(2, b"still here\n")

    forked(write)


def sleep() -> None:
    time.sleep(FOREVER)


def waits() -> None:
    """Waits for the next question; ends with the questions."""
    while sys.stdin.buffer.readline():
        pass


def exits() -> None:
    """Ends by itself."""
    os._exit(3)


def dies() -> None:
    """Ends by a signal."""
    os.kill(os.getpid(), signal.SIGSEGV)


def hangs() -> None:
    """Hears nothing any more, the end of the questions neither."""
    sleep()


def kills_its_group() -> None:
    """Kills all of its own group."""
    os.killpg(0, signal.SIGKILL)


def kills_its_parent() -> None:
    """Kills who started it, and hangs."""
    os.kill(os.getppid(), signal.SIGKILL)
    sleep()


def stops_its_parent() -> None:
    """Stops who started it, and hangs."""
    os.kill(os.getppid(), signal.SIGSTOP)
    sleep()


def babbles() -> None:
    """Breaks the protocol."""
    os.write(1, b"Hello!\n")
    sleep()


if __name__ == "__main__":
    question = json.loads(sys.stdin.buffer.readline())
    globals()[sys.argv[1]]()
    os.write(1, json.dumps({"id": question["id"], "result": "ok"}).encode() + b"\n")
    sys.stdin.buffer.readline()
    globals()[sys.argv[2]]()
