"""A session: the parts one after another, each within its share of the time left. One that fails stops no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from tools.on_gpu.log import Log
from tools.on_gpu.parts import Part
from tools.on_gpu.processes import GRACE, Ended

Start = Callable[[Sequence[str], float], Ended]
State = Literal["waiting", "running", "passed", "failed", "cut short", "left out"]

CANNOT_RUN, INTERRUPTED, INCOMPLETE = 4, 130, 3


class Session:
    """`start` runs the words of a part for so many seconds; `now` gives seconds."""

    def __init__(
        self, parts: Sequence[Part], seconds: float, start: Start, log: Log, now: Callable[[], float]
    ) -> None:
        self._parts, self._start, self._log, self._now = parts, start, log, now
        self._end = now() + seconds
        self.states: list[dict[str, Any]] = [
            {"name": part.name, "says": part.says, "state": "waiting", "why": ""} for part in parts
        ]

    def run(self) -> int:
        """Do all parts that there is time for; give the exit status."""
        try:
            for i, part in enumerate(self._parts):
                self._part(part, self.states[i])
                if part.vital and self.states[i].get("status") == CANNOT_RUN:
                    return self._ended("nothing can run here: see above", CANNOT_RUN)
        except KeyboardInterrupt:
            for state in self.states:
                if state["state"] == "running":
                    self._tell(state, "cut short", "the session was interrupted")
            return self._ended("the session was interrupted", INTERRUPTED)
        return self._ended("")

    def _left(self) -> float:
        """Give the seconds left for parts: an interrupted one needs some to write its record."""
        return self._end - self._now() - GRACE

    def _part(self, part: Part, state: dict[str, Any]) -> None:
        left = self._left()
        if left < part.least:
            self._tell(state, "left out", f"{max(0, left):.0f} s are left, and it needs {part.least:.0f}")
            return
        seconds = min(left, max(part.least, part.share * left))
        words = [w.format(minutes=max(1, int(seconds // 60))) if w == "{minutes}" else w for w in part.words]
        state |= {"command": words, "limit": round(seconds, 1)}
        self._tell(state, "running", f"for {seconds:.0f} s at most: python -m {' '.join(words)}")
        began = self._now()
        try:
            ended = self._start(words, seconds)
        except OSError as e:  # no process could be started
            self._tell(state, "failed", str(e))
            return
        state |= {"status": ended.status, "seconds": round(self._now() - began, 1)}
        self._tell(state, *self._judged(part, ended))

    @staticmethod
    def _judged(part: Part, ended: Ended) -> tuple[State, str]:
        if ended.cut:
            return "cut short", f"its time was over; status {ended.status}"
        if ended.status in part.fine:
            return "passed", ""
        return "failed", f"status {ended.status}"

    def _tell(self, state: dict[str, Any], now: State, why: str) -> None:
        """Note the state of a part, at once."""
        state |= {"state": now, "why": why}
        took = f" after {state['seconds']:.0f} s" if "seconds" in state else ""
        self._log.say(f"{state['name']}: {now}{took}{f': {why}' if why else ''}")
        self._log.keep(self.states)
        self._log.packed()

    def _ended(self, why: str, status: int | None = None) -> int:
        for state in self.states:
            if state["state"] == "waiting":
                self._tell(state, "left out", why)
        found = {now: [s["name"] for s in self.states if s["state"] == now] for now in _STATES}
        self._log.say("; ".join(f"{now}: {', '.join(names) or 'none'}" for now, names in found.items()))
        self._log.keep(self.states)
        if status is not None:
            return status
        return 1 if found["failed"] else INCOMPLETE if found["cut short"] or found["left out"] else 0


_STATES: tuple[State, ...] = ("passed", "failed", "cut short", "left out")
"""The states that a part ends in."""
