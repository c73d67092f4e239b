"""What the lives of all schedulers have in common: prompts that share beginnings, and how tokens are chosen."""

from __future__ import annotations

import random

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
