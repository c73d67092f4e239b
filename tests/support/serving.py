"""Random lives of a serving engine, each answer compared with the same network in float64, which has no cache.

A life draws requests that share prefixes, around the ends of blocks, with salts, samples, biases, stops and aborts,
while others are computed. It ends with the first thing that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from serving_engine import Engine, Output, Settings
from support.serving_judge import Asked, loaded, wrong_in

CHECKPOINTS = (("qwen3", "full,window 6"), ("llama", "full,full"), ("qwen3", "window 5,full,window 5"))
"""The architectures and layers of lives. The first is taken twice as often as the others."""
LONGEST, MOST_NEW = 40, 12
"""Tokens of a prompt, and of what follows it."""
MOST_STEPS = 3000
"""Steps after which a request that has no answer is stuck: more than a correct engine needs for all of a life."""


@dataclass(frozen=True)
class Wrong:
    """What was wrong first: after how many requests of all lives, and how it shows."""

    requests: int
    words: str


def settings_of(draw: np.random.Generator, groups: int, **fixed: Any) -> Settings:
    """Draw settings: small blocks, as many as one sequence needs or more, short chunks, with and without drafts and
    lossy rows."""
    size = int(draw.choice([2, 4, 8]))
    alone = groups * (-(-(LONGEST + MOST_NEW) // size) + 1)
    drawn = {
        "block_size": size,
        "blocks": int(alone * draw.choice([1, 1.3, 2, 5])),
        "chunk": int(draw.choice([3, 8, 13, 64])),
        "budget": int(draw.choice([6, 16, 64])),
        "sequences": int(draw.choice([3, 8])),
        "drafts": int(draw.choice([0, 3, 5])),
        "rows": str(draw.choice(["f32", "f32", "f32", "int8"])),
    }
    return Settings(**{**drawn, **fixed})


class Life:
    """One engine from its start on."""

    def __init__(
        self, seed: int, adapters: bool = False, match: bool = False, vectors: bool = False, **fixed: Any
    ) -> None:
        self.draw, self.names = np.random.default_rng(seed), np.random.default_rng([seed, 19])
        self.vectors = vectors
        self.checkpoint = (*CHECKPOINTS[int(self.draw.choice([0, 0, 1, 2]))], adapters, match)
        self.probe, model = loaded(*self.checkpoint)
        self.settings = settings_of(self.draw, len(model.groups()), **fixed)
        self.engine = Engine(model, self.settings)
        self.texts: list[tuple[str, list[int]]] = []
        self.open: dict[int, Asked] = {}
        self.asked: list[Asked] = []
        self.answered: dict[int, set[int]] = {}
        self.wrong = ""

    def lived(self, requests: int) -> tuple[int, str]:
        """Live until something is wrong; say after how many requests, and what."""
        for number in range(1, requests + 1):
            self.ask()
            self.go_on(int(self.draw.choice([0, 1, 1, 2, 6])))
            if number % 10 == 0 or number == requests:
                self.go_on(MOST_STEPS)
                self.wrong = self.wrong or self.missing()
            if self.wrong:
                return len(self.asked), self.wrong
        self.ask_the_largest()
        self.go_on(MOST_STEPS)
        return len(self.asked), self.wrong or self.missing()

    def ask(self) -> None:
        """Add a request. Now and then abort one; or begin a long text as one that is open begins, and abort it in
        mid prefill."""
        chance = self.draw.random()
        if self.open and chance < 0.1:
            self.abort(int(self.draw.choice(list(self.open))))
        elif self.open and chance < 0.2:
            prompt = self.open[int(self.draw.choice(list(self.open)))].prompt
            more = self.draw.integers(0, self.probe.layout.ids, LONGEST - len(prompt))
            self.add(Asked([*prompt, *map(int, more)], 1, {"salt": ""}))
            self.go_on(int(self.draw.integers(1, 4)))
            self.abort(max(self.open, default=0))
        self.add(self.request())

    def abort(self, number: int) -> None:
        """Abort a request, if it is open."""
        if number in self.open and not self.wrong:
            self.told(lambda: self.engine.abort(number))
            del self.open[number]

    def add(self, asked: Asked) -> bool:
        """Add a request; say whether the engine takes it. It says why it does not by ValueError."""
        try:
            number = self.engine.add(asked.ids, asked.new, **asked.options, **self.handed_in(asked))
        except ValueError:
            return False
        self.open[number] = asked
        self.asked.append(asked)
        self.texts.append((asked.options["salt"], asked.prompt))
        return True

    def handed_in(self, asked: Asked) -> dict[str, Any]:
        """Give the vectors of a request, if it has any."""
        embedding = self.engine.model.tensors["model.embed_tokens.weight"]
        return {"vectors": {at: embedding[asked.prompt[at]] for at in asked.places}} if asked.places else {}

    def ask_the_largest(self) -> None:
        """Add the longest prompt that the engine takes: all of its blocks are free again."""
        ids, size = self.probe.layout.ids, self.settings.block_size
        longest = [int(t) for t in self.draw.integers(0, ids, size * self.settings.blocks)]
        any(self.add(Asked(longest[:rows], 1, {"salt": "c"})) for rows in range(len(longest), 0, -size))

    def told(self, do: Callable[[], Any]) -> Any:
        """Give what the engine answers; whatever it raises is wrong."""
        try:
            return do()
        except Exception as e:
            self.wrong = f"the engine fails: {e!r}"
            return []

    def go_on(self, steps: int) -> None:
        """Make steps while there is work, and judge what they finish."""
        for _ in range(steps):
            if self.wrong or not self.engine.busy():
                return
            for output in self.told(self.engine.step):
                self.wrong = self.wrong or self.judged(output)

    def missing(self) -> str:
        """Say which requests have no answer though the engine had its time."""
        if self.engine.busy():
            return f"no answer after {MOST_STEPS} steps: {sorted(self.open)}"
        return f"lost: {sorted(self.open)}" if self.open else ""

    def request(self) -> Asked:
        """Draw a request."""
        salt, earlier = self.earlier()
        prompt, new = self.prompt(earlier), int(self.draw.integers(1, MOST_NEW + 1))
        options: dict[str, Any] = {"salt": salt if self.draw.random() < 0.8 else str(self.draw.choice(["", "a"]))}
        if self.checkpoint[2]:
            options["adapter"] = str(self.names.choice(["", "", "x", "x", "y"]))
        if self.draw.random() < 0.25:
            options["samples"] = int(self.draw.integers(1, 4))
        if "samples" in options or self.draw.random() < 0.3:
            ids = self.draw.permutation(self.probe.layout.ids)[:4]
            options["bias"] = {int(i): float(self.draw.uniform(40, 60)) for i in ids}
        if self.draw.random() < 0.15:
            options["stop"] = (prompt[-1] + int(self.draw.integers(1, 5))) % self.probe.layout.ids
        return Asked(prompt, new, options, self.places(len(prompt)) if self.vectors else range(0))

    def places(self, tokens: int) -> range:
        """Draw where tokens of a prompt are handed in as vectors: nowhere, everywhere, or a run."""
        start, stop = sorted(int(n) for n in self.names.integers(0, tokens + 1, 2))
        return (range(0), range(tokens), range(start, stop))[int(self.names.integers(0, 3))]

    def earlier(self) -> tuple[str, list[int]]:
        """Draw one of the newest texts and its salt; now and then none."""
        if not self.texts or self.draw.random() < 0.2:
            return "", []
        return self.texts[int(self.draw.integers(max(0, len(self.texts) - 12), len(self.texts)))]

    def prompt(self, text: list[int]) -> list[int]:
        """Draw a prompt that begins as a text, or is like it but in one place; a fresh one if there is no text."""
        fresh = [int(t) for t in self.draw.integers(0, self.probe.layout.ids, self.draw.integers(1, 20))]
        if not text:
            return fresh + self.counting(fresh)
        size = self.settings.block_size
        end = int(self.draw.integers(0, len(text) // size + 1)) * size + int(self.draw.integers(-1, 2))
        start = size if self.draw.random() < 0.08 and len(text) > size else 0
        text = text[start : max(start + 1, end if self.draw.random() < 0.6 else len(text))]
        if self.draw.random() < 0.25:
            text[int(self.draw.integers(0, len(text)))] = fresh[0]
        return (text + (fresh[1:8] if self.draw.random() < 0.6 else []))[:LONGEST]

    def counting(self, tokens: Sequence[int]) -> list[int]:
        """Draw what tokens are followed by: their end counted on, so that drafts are right, or nothing."""
        if self.draw.random() < 0.5:
            return []
        again = [(tokens[-1] + i) % self.probe.layout.ids for i in range(1, 8)]
        return [*again, *tokens[-1:]]

    def judged(self, output: Output) -> str:
        """Say what is wrong with an output; nothing, if nothing is."""
        asked = self.open.get(output.id)
        if asked is None:
            return f"request {output.id} was aborted or has ended, and has an output"
        self.take(asked, output)
        words = wrong_in(self.checkpoint, asked, output, self.settings) or self.reused(asked, output.reused)
        return words and f"request {output.id}, {len(asked.prompt)} tokens, sample {output.sample}: {words}"

    def take(self, asked: Asked, output: Output) -> None:
        """Take what is answered to a request, right or not."""
        samples = self.answered.setdefault(output.id, set())
        samples.add(output.sample)
        if len(samples) == asked.samples:
            del self.open[output.id]
        self.texts.append((asked.options["salt"], [*asked.prompt, *output.tokens]))

    def reused(self, asked: Asked, rows: int) -> str:
        """Say whether more rows were reused than others of this salt have in common with the prompt. What is
        generated behind a whole prompt may be reused too."""
        size, shares, most = self.settings.block_size, asked.shares, 0
        for other in self.asked:
            if other is not asked and other.shares == shares:
                same = common(other.prompt, asked.prompt)
                most = max(most, same + (other.new if same == len(other.prompt) else 0))
        if rows % size or rows > min(most, len(asked.prompt) - 1):
            return f"{rows} rows were reused; texts of its salt have at most {most} in common with it"
        return ""


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """Count the tokens that both texts begin with."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def lives(requests: int, seed: int = 0, each: int = 50, **fixed: Any) -> Wrong | None:
    """Live lives of `each` requests, until something is wrong or so many requests were made."""
    asked = 0
    for number in count():
        more, words = Life(seed * 1000 + number, **fixed).lived(each)
        asked += more
        if words and asked <= requests:
            return Wrong(asked, words)
        if asked >= requests:
            break
    return None


def counted(requests: int, seed: int, each: int = 50, **fixed: Any) -> Iterator[dict[str, int]]:
    """Live correct lives, and give what each engine counted."""
    for number in range(-(-requests // each)):
        life = Life(seed * 1000 + number, **fixed)
        _, words = life.lived(each)
        assert not words, f"seed {seed * 1000 + number}: {words}"
        yield life.engine.counts()
