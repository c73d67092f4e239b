"""The parent's end of the wire: it survives a worker that lies, hangs, eats memory or dies, and says which.

One deadline covers a whole message, writing included, so a peer that never reads cannot block the parent. A run
has the time of several operations, or that of all its operations by what calls took before. Time in which the
process waited for a core does not count. After any failure the process and all its relatives are killed, and the
next question starts it afresh.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Mapping, Sequence
from time import monotonic
from types import TracebackType
from typing import Any, NamedTuple, Self

from kvconform.worker.process import (
    Answer,
    Crashed,
    Hung,
    OutOfMemory,
    Process,
    ProtocolBroken,
    WorkerFailure,
)
from kvconform.worker.waits import Deadline
from kvspec.contract import Description, description
from kvspec.errors import BadInput, CannotRun
from kvspec.geometry import Array
from kvspec.operations.table import length_of
from kvspec.wire import framing, messages

__all__ = ["Crashed", "Hung", "OutOfMemory", "ProtocolBroken", "Worker", "WorkerFailure", "python_worker"]

MOST_FOR_A_RUN = 10
"""A run has the time of its operations, at most of this many deadlines: one that hangs costs it."""

GROWS = 4
"""A process whose memory has grown by one part in this many of the limit is started anew before the next trace.
Then no trace is blamed for what others leaked."""

PATIENCE = 6
"""What a slow engine is asked has this many times the time that operations took before."""

REMEMBERED = 64
"""Answers by which the time of an operation is known."""

KNOWN = 3
"""Answers from which on it is known."""

TICK = 0.05
"""Seconds between checks that the child lives and keeps its memory limit."""


def python_worker(adapter: str, all: bool = False) -> list[str]:
    """Give the command line that puts a Python adapter on the wire; with `all`, also what it does not claim. No
    file of the working folder shadows a library."""
    return [sys.executable, "-P", "-m", "kvadapters.serve", *(["--all"] if all else []), adapter]


class Pace:
    """How long an operation took in the newest answers of a worker."""

    def __init__(self) -> None:
        self._took: deque[tuple[int, float]] = deque()
        self._done, self._taken = 0, 0.0

    def note(self, operations: int, seconds: float) -> None:
        """Take in an answer to a question of so many operations."""
        self._took.append((operations, seconds))
        oldest = self._took.popleft() if len(self._took) > REMEMBERED else (0, 0.0)
        self._done += operations - oldest[0]
        self._taken += seconds - oldest[1]

    def seconds(self, operations: int) -> float:
        """Give the seconds that so many operations take; 0 while it is not known."""
        if len(self._took) < KNOWN:
            return 0.0
        return operations * self._taken / self._done


class Question(NamedTuple):
    """A question that was sent and is not answered."""

    id: int
    sent: float
    """When, in the seconds of `monotonic`."""
    begins: bool
    """Whether a trace begins with it."""
    operations: int
    """How many it asks for."""


class Worker:
    """Asks one worker process, which it starts when it is first needed and again after each failure."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        deadline: float = 20.0,
        start_deadline: float = 120.0,
        memory_limit: int = 4 << 30,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """`deadline` holds for one operation, `start_deadline` for each message until a trace has begun: an engine
        loads, and may compile. Both in seconds; `memory_limit` in bytes."""
        self.argv, self.env = list(argv), env
        self.deadline, self.start_deadline, self.memory_limit = deadline, start_deadline, memory_limit
        self.starts = 0
        self.peak_rss = 0
        self.watches = False
        """Whether memory is looked at after each answer of a trace, not each tick."""
        self.used: list[int] = []
        """Resident bytes once the newest trace began and after each of its answers, where it watches; the last is
        what went over the limit, if it did."""
        self._used_at_first = 0
        self._id = 0
        self._begun, self._looked = False, 0.0
        self._open: deque[Question] = deque()
        self._pace, self._answered = Pace(), 0.0
        self._child: Process | None = None

    def ask(self, head: Mapping[str, Any], tensors: Mapping[str, Array | None] | None = None) -> Answer:
        """Send one question (without its id) and wait for its answer. Raises WorkerFailure."""
        self.send(head, tensors)
        return self.receive()

    def send(self, head: Mapping[str, Any], tensors: Mapping[str, Array | None] | None = None) -> None:
        """Send one question. Several may be sent before their answers are received. Raises WorkerFailure."""
        if self._open and head.get("op") == "begin":
            self.close()  # an error of the harness ended the last trace: its answers are not those of this one
        self._id += 1
        message, begins = framing.encode({"id": self._id, **head}, tensors), head.get("op") == "begin"
        try:
            (self._child or self._start()).send(message, waits=begins)
        except BaseException as e:
            raise self._failed(e) from None
        self._open.append(Question(self._id, monotonic(), begins, length_of(head)))

    def receive(self) -> Answer:
        """Wait for the answer to the oldest open question, within the deadline from now. Raises WorkerFailure."""
        question = self._open.popleft()
        try:
            assert self._child is not None, "a question was sent"
            answer, arrays = self._exchange(self._child, self._allowed(question.operations))
            said = answer.pop("id", None)
            if type(said) is not int or said != question.id:
                raise ProtocolBroken(f"an answer to question {said!r:.40}; the question was {question.id}")
        except BaseException as e:
            raise self._failed(e) from None
        if question.begins and not self._begun:
            self._used_at_first = self._child.family.resident()
        if self.watches:
            self.used = [*(self.used if not question.begins else ()), self._child.family.resident()]
        began, self._answered = max(question.sent, self._answered), monotonic()
        if self._begun and not question.begins:
            self._pace.note(question.operations, self._answered - began)
        self._begun = self._begun or question.begins
        return answer, arrays

    def describe(self) -> Description:
        """Ask the adapter for its description. Raises BadInput, CannotRun, WorkerFailure."""
        answer, _ = self.ask({"op": "describe", "protocol": framing.PROTOCOL})
        try:
            message = messages.text(answer, "message", messages.LONGEST_MESSAGE)
        except framing.ProtocolError as e:
            raise self.broken(str(e)) from None
        match answer.get("result"):
            case "ok":
                return description(answer.get("describe")).took(answer.get("takes") or ())
            case "cannot_run":
                raise CannotRun(message)
            case "error":
                raise BadInput(message)
        raise self.broken(f"describe: result {answer.get('result')!r:.40} is none of ok, error, cannot_run")

    def broken(self, message: str) -> BaseException:
        """Kill the worker for an answer that breaks the protocol; give the failure to raise."""
        return self._failed(ProtocolBroken(message))

    @property
    def stderr(self) -> str:
        """Give the last lines that the running process wrote to standard error."""
        return self._child.stderr() if self._child else ""

    def peak(self) -> int:
        """Give the peak resident bytes of the process and its relatives, as far as known."""
        if self._child is not None:
            self.peak_rss = max(self.peak_rss, self._child.family.resident())
        return self.peak_rss

    @property
    def has_grown(self) -> bool:
        """Tell whether the memory of the process has grown much since its first trace began. Looks now: a quick
        process keeps much within a tick."""
        if self._child is None or not self._begun:
            return False
        return self._child.family.resident() - self._used_at_first > self.memory_limit // GROWS

    def close(self) -> None:
        """Kill the process and its relatives, if there is one. The next question starts it again."""
        if self._child is not None:
            self.peak()
            self._child.kill()
            self._child = None
            self._open.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, t: TracebackType | None) -> None:
        self.close()

    def _failed(self, e: BaseException) -> BaseException:
        """Kill the process after anything interrupts an exchange, Ctrl-C too, because its state is then unknown.
        Give the failure to raise, with the last messages of the process."""
        if isinstance(e, WorkerFailure):
            e = type(e)(e.message, self._child.last_words() if self._child else "")
        self.close()
        return e

    def _start(self) -> Process:
        self._child = Process(self.argv, self.env)
        self._begun, self._looked = False, monotonic()
        self._used_at_first, self.used = 0, []
        self.starts += 1
        return self._child

    def _allowed(self, operations: int) -> float:
        """Give the seconds allowed for the answer to a question of so many operations. Each has a deadline, up to
        some number of them. More time is allowed if the answers so far tell that so many operations take
        longer, as they do in a simulator, or on a machine with much other work."""
        each = self.deadline if self._begun else self.start_deadline
        return max(each * min(operations, MOST_FOR_A_RUN), PATIENCE * self._pace.seconds(operations))

    def _exchange(self, child: Process, allowed: float) -> Answer:
        """Write and read together until one whole answer is there."""
        deadline = Deadline(allowed, child.family.pids)
        while (answer := child.answer_within(min(TICK, deadline.left()))) is None:
            self._look_at_memory(child)
            if deadline.is_over():
                raise Hung(f"no answer in {allowed:g} s: {child.waiting()}")
        self._look_at_memory(child)
        return answer

    def _look_at_memory(self, child: Process) -> None:
        now = monotonic()
        if now - self._looked < TICK and not self.watches:
            return
        self._looked = now
        used = child.family.resident()
        self.peak_rss = max(self.peak_rss, used)
        if used > self.memory_limit:
            self.used.append(used)
            raise OutOfMemory(f"{used >> 20} MiB resident; the limit is {self.memory_limit >> 20} MiB")
