"""Writes a long log of steps to measure by: `python -m tools.long_log LOG [--steps N]`, run in `tests/`.

32 sequences go on at once. Each has a prompt of 257 to 656 tokens, of which 256 are the same for all and are found,
and gets 50 to 800 tokens. Pages have 16 rows. Then `kvconform check LOG` judges it.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BLOCK, PAGES, TOGETHER, SHARED, WORDS = 16, 20_000, 32, 256, 50_000


@dataclass
class Running:
    """A sequence: how many rows it has, how many tokens, how many it will have, and its pages."""

    name: str
    rows: int
    tokens: int
    end: int
    pages: list[int]


class Engine:
    """An engine that decides steps and gives pages."""

    def __init__(self) -> None:
        self.draw, self.free = random.Random(1), list(range(PAGES - 1, 0, -1))
        self.shared = [self.draw.randrange(WORDS) for _ in range(SHARED)]
        self.first: list[int] = []
        self.alive: list[Running] = []
        self.asked = 0

    def events(self, steps: int) -> Iterator[dict[str, Any]]:
        """Give the lines of a log."""
        groups = [{"block": BLOCK, "view": "full"}]
        yield {"kvsteps": 1, "engine": "made up", "pages": PAGES, "reserved": [0], "groups": groups}
        for _ in range(steps):
            while len(self.alive) < TOGETHER:
                yield self.add()
            yield {"step": {each.name: self.part(each) for each in self.alive}}
            yield {"sampled": {each.name: [self.draw.randrange(WORDS)] for each in self.alive}}
            yield from self.ended()
            yield {"left": len(self.free)}

    def add(self) -> dict[str, Any]:
        """Let a sequence come."""
        self.asked += 1
        prompt = self.shared + [self.draw.randrange(WORDS) for _ in range(self.draw.randint(1, 400))]
        name, end = f"request-{self.asked}", len(prompt) + self.draw.randint(50, 800)
        self.alive.append(Running(name, 0, len(prompt), end, []))
        return {"add": name, "tokens": prompt}

    def part(self, each: Running) -> dict[str, Any]:
        """Compute what a sequence has not computed yet."""
        new, start = not each.rows, each.rows
        if new:
            each.pages, start = list(self.first), len(self.first) * BLOCK
        more = [self.free.pop() for _ in range(-(-each.tokens // BLOCK) - len(each.pages))]
        each.pages += more
        self.first = self.first or each.pages[: SHARED // BLOCK]
        told = {"tables": [each.pages]} if new else {"more": [more]} if more else {}
        part = {"start": start, "n": each.tokens - start, **told}
        each.rows, each.tokens = each.tokens, each.tokens + 1
        return part

    def ended(self) -> Iterator[dict[str, Any]]:
        """Let sequences end that have all their tokens. The pages of what is shared stay."""
        for each in [each for each in self.alive if each.tokens >= each.end]:
            self.alive.remove(each)
            self.free += each.pages[SHARED // BLOCK :]
            yield from ({verb: each.name} for verb in ("finish", "free"))


def written(log: Path, steps: int) -> Path:
    """Write a log."""
    with log.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(event) + "\n" for event in Engine().events(steps))
    return log


def main(arguments: Sequence[str]) -> int:
    """Write a log."""
    reader = argparse.ArgumentParser(prog="python -m tools.long_log")
    reader.add_argument("log", type=Path)
    reader.add_argument("--steps", type=int, default=100_000, help="100,000 if it is not given")
    how = reader.parse_args(arguments)
    written(how.log, how.steps)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
