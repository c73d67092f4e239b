"""What the lives of all schedulers have in common: prompts that share beginnings, how tokens are chosen, and how a
life goes on to its end."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from kvconform.steps.verdict import Verdict, judged

LONGEST, MOST_NEW, IDS = 40, 12, 50
"""Tokens of a prompt, tokens behind it, and how many tokens there are."""


def next_token(text: list[int]) -> int:
    """Choose the next token of a text, so that equal texts go on equally."""
    return (7 * text[-1] + 3 * text[len(text) // 2] + len(text)) % IDS


class Prompts:
    """Draws prompts that end around the ends of blocks of earlier texts."""

    def __init__(self, draw: random.Random, block: int) -> None:
        self.draw, self.block = draw, block
        self.texts: list[list[int]] = []

    def drawn(self) -> list[int]:
        """Draw a prompt: a fresh one, or one that begins as an earlier text."""
        draw = self.draw
        fresh = [draw.randrange(IDS) for _ in range(draw.randint(1, 20))]
        if self.texts and draw.random() < 0.8:
            text = draw.choice(self.texts[-12:])
            end = draw.randint(0, len(text) // self.block) * self.block + draw.randint(-1, 1)
            start = self.block if draw.random() < 0.1 else 0
            fresh = text[start : max(start + 1, end)] + (fresh[:8] if draw.random() < 0.7 else [])
        self.seen(fresh or [1])
        return list(self.texts[-1])

    def seen(self, text: list[int]) -> None:
        """Remember a text that is there now."""
        self.texts.append(text[:LONGEST])


class Life(ABC):
    """A scheduler from its start on, which writes a log of steps."""

    scheduler: Any
    steps = 0
    notices: ClassVar[tuple[type[Exception], ...]] = (AssertionError, RuntimeError, ValueError)
    """What a broken scheduler may raise: it may notice by itself that it is broken."""

    @abstractmethod
    def is_done(self) -> bool:
        """Tell whether all requests have their answers."""

    @abstractmethod
    def happen(self) -> None:
        """Let requests come and go."""

    @abstractmethod
    def step(self) -> None:
        """Decide a step, and take the tokens of one that was computed."""

    def live(self, steps: int) -> None:
        """Live so many steps, and until all requests have their answers."""
        while self.steps < steps or not self.is_done():
            if self.steps < steps:
                self.happen()
            self.step()
            self.steps += 1
            if self.steps > 3 * steps + 1000:
                raise AssertionError("the scheduler is stuck")
        self.scheduler.step_log.file.close()

    def judged(self, log: Path, steps: int) -> Verdict:
        """Live so many steps, as far as the scheduler lets it, and judge the log."""
        try:
            self.live(steps)
        except self.notices as e:
            print(f"{type(e).__name__}: {e}")
        self.scheduler.step_log.file.close()
        return judged(log)
