"""One worker process with its pipes. It writes, reads, keeps the last messages, and never waits beyond a
deadline."""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import signal
import subprocess
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from kvconform.worker.start import end, started
from kvspec.errors import BadInput
from kvspec.wire import framing

BUFFER = 1 << 18
"""Bytes read at a time."""
PIPE = 1 << 20
"""Bytes a pipe holds, where the system lets us say."""
KEPT = 64 << 10
"""Bytes of standard error that are kept, the last ones."""
SHOWN = 20
"""Lines of standard error that a failure shows."""
TOGETHER = 1 << 16
"""Bytes of messages that wait for an answer to be wanted: then they are written together."""
LAST_BREATH = 1.0
"""Seconds a process has to end once its output has."""

Answer = tuple[dict[str, Any], framing.Tensors]


class WorkerFailure(Exception):
    """The worker did not answer as it should; `verdict` says how, `stderr` holds its last messages."""

    verdict = ""

    def __init__(self, message: str, stderr: str = "") -> None:
        super().__init__(f"{message}; standard error ends:\n{stderr}" if stderr else message)
        self.message, self.stderr = message, stderr


class Crashed(WorkerFailure):
    """The worker ended, by a signal or by itself."""

    verdict = "CRASH"


class Hung(WorkerFailure):
    """No whole answer within the deadline."""

    verdict = "HANG"


class OutOfMemory(WorkerFailure):
    """The worker exceeded the memory limit and was killed."""

    verdict = "OOM"


class ProtocolBroken(WorkerFailure):
    """The worker sent something that is not an answer to the question."""

    verdict = "PROTOCOL"


class Process:
    """A process in its own session. All three pipes are non-blocking; only `answer_within` waits."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str] | None) -> None:
        try:
            self._popen, self.family, self.pid = started(argv, env)
        except (OSError, ValueError) as e:
            raise BadInput(f"cannot start {argv[0]}: {e}") from None
        self._kill = weakref.finalize(self, end, self._popen, self.family, self.pid)
        self._decoder = framing.Decoder()
        self._stderr = bytearray()
        self._unsent = bytearray()
        self._writing = False
        self._asked = 0
        self._answers: deque[Answer] = deque()
        self._broken: ProtocolBroken | None = None
        self._selector = selectors.DefaultSelector()
        self._in, self._out, self._err = (self._watched(p) for p in ("stdin", "stdout", "stderr"))

    def _watched(self, pipe: str) -> int:
        number: int = getattr(self._popen, pipe).fileno()
        os.set_blocking(number, False)
        _widen(number)
        if pipe != "stdin":
            self._selector.register(number, selectors.EVENT_READ)
        return number

    def send(self, message: bytes, waits: bool = False) -> None:
        """Begin to write a message; the rest is written while waiting for answers. One behind another, or one that
        `waits` for more, is written when an answer is wanted: each time that a process is woken costs both."""
        self._unsent += message
        if not (self._asked or waits) or len(self._unsent) > TOGETHER:
            self._begin_to_write()
        self._asked += 1

    def _begin_to_write(self) -> None:
        if not self._writing:
            self._write()
        if self._unsent and not self._writing:
            self._selector.register(self._in, selectors.EVENT_WRITE)
            self._writing = True

    def answer_within(self, seconds: float) -> Answer | None:
        """Wait this long for the next answer, writing and reading meanwhile. Raises Crashed, ProtocolBroken."""
        if self._answers:
            return self._answers.popleft()
        if self._broken is not None:
            raise self._broken
        if self._unsent:
            self._begin_to_write()
        ready = {key.fd for key, _ in self._selector.select(max(0.0, seconds))}
        dead = self._out not in ready and self._popen.poll() is not None
        if dead:  # what it wrote before it died may have come in between
            ready |= {key.fd for key, _ in self._selector.select(0)}
        if self._err in ready:
            self._keep_stderr()
        if self._in in ready:
            self._write()
            if not self._unsent:
                self._selector.unregister(self._in)
                self._writing = False
        if self._out in ready:
            self._read()
            return self._answers.popleft() if self._answers else None
        if dead:
            raise Crashed(self._how_it_ended())
        return None

    def waiting(self) -> str:
        """Say how far the exchange came."""
        unread = f"; {len(self._unsent)} bytes of the question were not read" if self._unsent else ""
        return f"{self._decoder.waiting} arrived{unread}"

    def _write(self) -> None:
        try:
            del self._unsent[: os.write(self._in, self._unsent)]
        except BlockingIOError:
            pass
        except BrokenPipeError:  # it closed its input; whether it ended is for the reading side to see
            self._unsent.clear()

    def _read(self) -> None:
        data = os.read(self._out, BUFFER)
        if not data:
            raise self._output_ended()
        try:
            for message in self._decoder.feed(data):
                self._count_answer()
                self._answers.append(message)
        except framing.ProtocolError as e:
            self._broken = ProtocolBroken(str(e))
            if not self._answers or not self._asked:
                raise self._broken from None
            return  # answers came whole before it; it is the answer to the question behind them that is broken
        if not self._asked and self._decoder.busy:
            raise ProtocolBroken(f"more than one answer: {self._decoder.waiting} followed")
        if not self._asked and self._unsent:
            raise ProtocolBroken(f"answered before it read the question: {len(self._unsent)} bytes were unread")

    def _count_answer(self) -> None:
        if not self._asked:
            raise ProtocolBroken("two answers to one question")
        self._asked -= 1

    def _output_ended(self) -> WorkerFailure:
        try:
            self._popen.wait(LAST_BREATH)
        except subprocess.TimeoutExpired:
            return ProtocolBroken("closed its standard output and is still running")
        return Crashed(self._how_it_ended())

    def _how_it_ended(self) -> str:
        midway = f" in the middle of an answer, {self._decoder.waiting} arrived" if self._decoder.busy else ""
        return f"{_ending(self._popen.returncode)}{midway}"

    def _keep_stderr(self) -> bool:
        """Read standard error; tell whether there was anything."""
        try:
            data = os.read(self._err, BUFFER)
        except BlockingIOError:
            return False
        if not data:
            with contextlib.suppress(KeyError):
                self._selector.unregister(self._err)
        self._stderr += data
        del self._stderr[:-KEPT]
        return bool(data)

    def stderr(self) -> str:
        """Give the last part of its standard error; bounded, because a process may write without end."""
        for _ in range(2 * KEPT // 4096):
            if not self._keep_stderr():
                break
        return self._stderr.decode(errors="replace")

    def last_words(self) -> str:
        """Give the last lines of its standard error."""
        return "\n".join(self.stderr().splitlines()[-SHOWN:])

    def kill(self) -> None:
        """Kill it with all its relatives, reap it, close the pipes."""
        self._selector.close()
        self._kill()


def _widen(pipe: int) -> None:
    """Enlarge a pipe to hold a whole message, so no side wakes the other halfway; not every system can."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE)


def _ending(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    hint = " (not by the harness; systems do so when memory runs out)" if name == "SIGKILL" else ""
    return f"killed by {name}{hint}"
