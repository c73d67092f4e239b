"""Plays histories of requests on an engine, and keeps what was asked and answered."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kvadapters.serving.driver import Answer, Driver, EngineFailed, Request
from kvspec.errors import Refused
from kvspec.serving.history import History, Step
from kvspec.serving.texts import Texts

BIAS = 40.0
"""What makes tokens likelier than the one that follows, where several samples are asked for."""
RANK = 4.0
"""How much likelier each of them is than the next, where samples begin with the likeliest ones in their order."""


@dataclass
class Asked:
    """One request of a history, the `number`-th from 0, and what became of it."""

    number: int
    step: Step
    request: Request
    alone: bool
    """Whether no other request was under way when it began."""
    answer: Answer | None = None
    failed: str = ""
    """What the engine said when it failed at this request."""
    outcome: str = "under way"
    handle: Any = field(default=None, repr=False)

    @property
    def texts(self) -> list[list[int]]:
        """Give the text of each sample: its prompt, and its answer where there is one."""
        samples = self.answer.samples if self.answer else ()
        return [[*self.request.tokens, *sample.tokens] for sample in samples] or [[*self.request.tokens]]


class Player:
    """Plays histories on an engine, one after another. Tokens are drawn anew for each, so that none finds the rows
    of an earlier one."""

    def __init__(self, driver: Driver, ids: int, seed: int = 0) -> None:
        self.driver, self.ids = driver, ids
        self.drawn = Texts(ids, seed)
        self.counts = Counter[str]()
        self.seconds = 0.0

    def play(self, history: History) -> list[Asked]:
        """Play one history; give its requests, each with its answer."""
        began, asked = time.perf_counter(), dict[str, Asked]()
        self.drawn.of.clear()
        for step in history:
            self._step(step, asked)
        for one in asked.values():
            self._wait(one)
        self.seconds += time.perf_counter() - began
        return list(asked.values())

    def _step(self, step: Step, asked: dict[str, Asked]) -> None:
        if step.begins:
            self._begin(step, asked)
        elif step.do == "step":
            self._worked(step.count, list(asked.values()))
        elif step.do == "cancel":
            self._cancel(asked[step.name])
        else:
            for one in [asked[step.name]] if step.name else asked.values():
                self._wait(one)

    def _begin(self, step: Step, asked: dict[str, Asked]) -> None:
        prompt = self.drawn.begin(step)
        others = self.drawn.others(prompt, step.samples) if step.samples > 1 else []
        rank = RANK if "ranks" in self.driver.declared.can else 0.0
        bias = {token: BIAS - rank * at for at, token in enumerate(others)}
        stop = prompt[-1]
        for _ in range(step.stop):
            stop = self.drawn.after(stop)
        ends = stop if step.stop else None
        places = slice(*step.vectors).indices(len(prompt))[:2]
        request = Request(prompt, step.new, step.samples, step.salt, bias, ends, step.adapter, places)
        alone = all(one.outcome != "under way" for one in asked.values())
        one = asked[step.name] = Asked(len(asked), step, request, alone)
        self.counts["requests"] += 1
        self.counts["tokens"] += len(prompt)
        try:
            one.handle = self.driver.submit(request)
        except Refused as e:
            self._ended(one, "refused", str(e))
        except (EngineFailed, OSError) as e:
            self._ended(one, "failed", str(e))
        if step.do == "ask" or "concurrent" not in self.driver.declared.can:
            self._wait(one)

    def _wait(self, one: Asked) -> None:
        if one.outcome != "under way":
            return
        try:
            one.answer = self.driver.wait(one.handle)
        except Refused as e:
            self._ended(one, "refused", str(e))
        except (EngineFailed, OSError) as e:
            self._ended(one, "failed", str(e))
        else:
            self._ended(one, "answered")
            self.counts["cached tokens told"] += one.answer.cached or 0
            self.counts["new tokens"] += sum(len(sample.tokens) for sample in one.answer.samples)
            if one.answer.samples:
                tokens = one.answer.samples[0].tokens
                self.drawn.answered(one.step.name, [t for t in tokens if 0 <= t < self.ids])

    def _cancel(self, one: Asked) -> None:
        if one.outcome == "under way":
            try:
                self.driver.cancel(one.handle)
            except (EngineFailed, OSError) as e:
                self._ended(one, "failed", str(e))
            else:
                self._ended(one, "cancelled")

    def _worked(self, count: int, asked: Sequence[Asked]) -> None:
        """Let the engine work. If it fails, it fails at the newest request that is under way."""
        try:
            self.driver.step(count)
        except EngineFailed as e:
            for one in [one for one in asked if one.outcome == "under way"][-1:]:
                self._ended(one, "failed", str(e))

    def _ended(self, one: Asked, outcome: str, said: str = "") -> None:
        one.outcome, one.handle = outcome, None
        one.failed = said
        self.counts[outcome] += 1
