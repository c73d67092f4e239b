"""Judges the example engine by the log of its steps, as `kvconform check LOG` does, while a fault is planted in it.

The lives are those of `support.serving`. They go on whatever is answered in them. What is answered is judged beside
the log, so that it can be told which of the two sees a fault, and which sees it first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from hostile.engine_faults import Variant
from kvconform.steps.verdict import judged
from kvspec.errors import BadInput
from serving_engine import Output
from serving_engine.step_log import StepLog
from support.serving import Life

LIVES = 6
"""Lives of about 56 requests in which a fault must show."""


@dataclass(frozen=True)
class Shown:
    """How a fault shows first in lives of `asked` requests. Their log breaks a clause of STEP after `requests`, and
    the words say how. If the log cannot be read, the clause is `log`; if nothing shows, it is empty. An answer is
    wrong after `answers` requests. Of each, 0 says never."""

    asked: int
    requests: int = 0
    clause: str = ""
    words: str = ""
    answers: int = 0


class Watched(Life):
    """A life that goes on whatever is answered, and keeps after how many requests an answer was wrong."""

    first = 0

    def judged(self, output: Output) -> str:
        """Judge an output, and take it for right. One of a request that is not open changes nothing."""
        if self.first:
            self.taken(output)
        elif super().judged(output):
            self.first = len(self.asked)
        return ""

    def taken(self, output: Output) -> None:
        """Take an output."""
        if asked := self.open.get(output.id):
            self.take(asked, output)

    def watched(self, requests: int) -> tuple[int, int]:
        """Live; give how many requests there were, and after how many an answer, or the engine, was wrong."""
        asked, words = self.lived(requests)
        return asked, self.first or (asked if words else 0)


def shown(variant: Variant, log: Path, lives: int = LIVES, seed: int = 0) -> Shown:
    """Live lives, and say how they show first that something is wrong. Each writes its log anew."""
    found = Shown(0)
    for number in range(lives):
        with variant.planted():
            life = Watched(seed * 1000 + number, **variant.settings)
            with StepLog(life.engine, log):
                asked, wrong = life.watched(50)
        if wrong and not found.answers:
            found = replace(found, answers=found.asked + wrong)
        if not found.clause:
            found = broken(log, found, asked)
        found = replace(found, asked=found.asked + asked)
    return found


def broken(log: Path, found: Shown, asked: int) -> Shown:
    """Add what the log of a life with so many requests shows."""
    try:
        verdict = judged(log)
    except BadInput as e:
        return replace(found, requests=found.asked + asked, clause="log", words=str(e))
    if not (one := verdict.broken):
        return found
    return replace(found, requests=found.asked + verdict.counts["requests"], clause=one.clause, words=one.message)
