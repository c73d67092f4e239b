"""Judges the example engine by the log of its steps, as `kvconform check LOG` does, while a fault is planted in it.

The lives are those of `support.serving`; what is answered in them is not looked at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hostile.engine_faults import Fault
from kvconform.steps.verdict import judged
from kvspec.errors import BadInput
from serving_engine import Output
from serving_engine.step_log import StepLog
from support.serving import Life

LIVES = 6
"""Lives of 50 requests in which a fault must show."""


@dataclass(frozen=True)
class Shown:
    """How a fault shows first: after how many requests, the clause of STEP that is broken, and the words. If the
    log cannot be, the clause is `log`; if nothing shows, it is empty."""

    requests: int
    clause: str
    words: str = ""


class Unjudged(Life):
    """A life in which answers are not judged, and none is awaited from an engine that fails."""

    def judged(self, output: Output) -> str:
        """Take an output for right."""
        asked = self.open.get(output.id)
        if asked is not None:
            samples = self.answered.setdefault(output.id, set())
            samples.add(output.sample)
            if len(samples) == asked.samples:
                del self.open[output.id]
            self.texts.append((asked.options["salt"], [*asked.prompt, *output.tokens]))
        return ""


def shown(fault: Fault, log: Path, lives: int = LIVES, seed: int = 0) -> Shown:
    """Live lives with a fault until their log shows it. Each writes its log anew."""
    requests = 0
    for number in range(lives):
        with fault.planted():
            life = Unjudged(seed * 1000 + number, **fault.settings)
            with StepLog(life.engine, log):
                requests += life.lived(50)[0]
        try:
            broken = judged(log).broken
        except BadInput as e:
            return Shown(requests, "log", str(e))
        if broken:
            return Shown(requests, broken.clause, broken.message)
    return Shown(requests, "")
