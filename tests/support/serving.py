"""Random lives of a serving engine, each answer compared with the same network in float64, which has no cache.

A life draws requests that share prefixes, around the ends of blocks, with salts, samples, biases, stops and aborts,
while others are computed. It ends with the first thing that is wrong."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from kvadapters.probe import Precision, Probe, read
from kvadapters.probe.weights import AMPLITUDE, WEIGHT_LOGIT
from serving_engine import Engine, Output, Settings
from serving_engine.model import Model

CHECKPOINTS = (("qwen3", "full,window 6"), ("llama", "full,full"), ("qwen3", "window 5,full,window 5"))
"""The architectures and layers of lives. The first is taken twice as often as the others."""
LONGEST, MOST_NEW = 40, 12
"""Tokens of a prompt, and of what follows it."""
MOST_STEPS = 3000
"""Steps after which a request that has no answer is stuck: more than a correct engine needs for all of a life."""


@cache
def loaded(architecture: str, layers: str) -> tuple[Probe, Model]:
    """A probe with one kv head, which is quick, and the engine's model of its checkpoint."""
    probe = Probe.of(architecture, layers)
    probe = replace(probe, layout=replace(probe.layout, kv_heads=1))
    with tempfile.TemporaryDirectory() as folder:
        probe.write(folder)
        return probe, Model(Path(folder))


@dataclass(frozen=True)
class Wrong:
    """What was wrong first: after how many requests of all lives, and how it shows."""

    requests: int
    words: str


@dataclass(frozen=True)
class Asked:
    """A request, and the outputs that it must get."""

    prompt: list[int]
    new: int
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def samples(self) -> int:
        return int(self.options.get("samples", 1))


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

    def __init__(self, seed: int, **fixed: Any) -> None:
        self.draw = np.random.default_rng(seed)
        self.checkpoint = CHECKPOINTS[int(self.draw.choice([0, 0, 1, 2]))]
        self.probe, model = loaded(*self.checkpoint)
        self.settings = settings_of(self.draw, len(model.groups()), **fixed)
        self.engine = Engine(model, self.settings)
        self.texts: list[list[int]] = []
        self.open: dict[int, Asked] = {}
        self.answered: dict[int, set[int]] = {}
        self.wrong = ""

    def lived(self, requests: int) -> tuple[int, str]:
        """Live until something is wrong; say after how many requests, and what."""
        for count in range(1, requests + 1):
            self.ask()
            self.go_on(int(self.draw.choice([0, 1, 2, 6])))
            if count % 10 == 0 or count == requests:
                self.go_on(MOST_STEPS)
                self.wrong = self.wrong or self.missing()
            if self.wrong:
                return count, self.wrong
        return requests, ""

    def ask(self) -> None:
        """Add a request, and now and then abort one."""
        asked = self.request()
        number = self.told(lambda: self.engine.add(list(asked.prompt), asked.new, **asked.options))
        if not self.wrong:
            self.open[number] = asked
        if not self.wrong and self.draw.random() < 0.12:
            number = int(self.draw.choice(list(self.open)))
            self.told(lambda: self.engine.abort(number))
            del self.open[number]

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
        prompt, new = self.prompt(), int(self.draw.integers(1, MOST_NEW + 1))
        options: dict[str, Any] = {"salt": str(self.draw.choice(["", "", "", "a", "b"]))}
        if self.draw.random() < 0.25:
            options["samples"] = int(self.draw.integers(1, 4))
        if "samples" in options or self.draw.random() < 0.3:
            ids = self.draw.permutation(self.probe.layout.ids)[:4]
            options["bias"] = {int(i): float(self.draw.uniform(40, 60)) for i in ids}
        if self.draw.random() < 0.15:
            options["stop"] = (prompt[-1] + int(self.draw.integers(1, 5))) % self.probe.layout.ids
        return Asked(prompt, new, options)

    def prompt(self) -> list[int]:
        """Draw a prompt: mostly one that an earlier text begins with, or one that is like it but in one place."""
        fresh = [int(t) for t in self.draw.integers(0, self.probe.layout.ids, self.draw.integers(1, 20))]
        if not self.texts or self.draw.random() < 0.2:
            return fresh + self.counting(fresh)
        text = list(self.texts[int(self.draw.integers(max(0, len(self.texts) - 12), len(self.texts)))])
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
        samples = self.answered.setdefault(output.id, set())
        samples.add(output.sample)
        if len(samples) == asked.samples:
            del self.open[output.id]
        self.texts.append([*asked.prompt, *output.tokens])
        words = wrong_in(self.checkpoint, asked, output, self.settings)
        return words and f"request {output.id}, {len(asked.prompt)} tokens, sample {output.sample}: {words}"


def wrong_in(checkpoint: tuple[str, str], asked: Asked, output: Output, settings: Settings) -> str:
    """Say what is wrong with an output, by what float64 answers to the same tokens."""
    text, (probe, _) = [*asked.prompt, *output.tokens][:-1], loaded(*checkpoint)
    given, shape = output.logprobs, (len(output.tokens), probe.layout.vocabulary)
    if given.shape != shape or given.dtype != np.float32 or not output.tokens:
        return f"logprobs are {given.dtype} {given.shape}, not float32 {shape}"
    if not np.isfinite(given).all():
        return "logprobs are not finite"
    if settings.rows == "f32":
        right = _logprobs(checkpoint, tuple(text))[len(asked.prompt) - 1 :]
        if np.abs(given - right).max() > bound(len(text)):
            return _told(probe, text, output, Precision("f32")) or "other logprobs than float64's"
    elif words := _told(probe, text, output, Precision("f32", rows="q8_0")):
        return words
    return _ended(asked, output) or _chosen(asked, output)


@lru_cache(1000)
def _logprobs(checkpoint: tuple[str, str], text: tuple[int, ...]) -> Any:
    probe, _ = loaded(*checkpoint)
    logits = probe.network.logits(probe.network.hidden(text))
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def bound(rows: int) -> float:
    """How far a correct engine's logprobs may be from float64's: roundings of logits up to 32, twice, and of
    weights by RoPE's angles."""
    precision = Precision("f32")
    return 64 * precision.relative + WEIGHT_LOGIT * precision.score(AMPLITUDE, 1.0, rows)


def _told(probe: Probe, text: list[int], output: Output, precision: Precision) -> str:
    judgement = read(probe, text, output.logprobs, precision)
    return f"{judgement.wrong[0].place}: {judgement.wrong[0].findings[0].words}" if judgement.wrong else ""


def _ended(asked: Asked, output: Output) -> str:
    stop = asked.options.get("stop")
    ends = [i + 1 for i, token in enumerate(output.tokens) if token == stop or i + 1 == asked.new]
    right = "stop" if output.tokens[-1] == stop else "length"
    if ends[:1] != [len(output.tokens)] or output.finished != right:
        return f"{len(output.tokens)} of {asked.new} tokens, stop {stop}: finished by {output.finished}"
    return ""


def _chosen(asked: Asked, output: Output) -> str:
    for index, (row, token) in enumerate(zip(output.logprobs, output.tokens, strict=True)):
        biased = row.astype(np.float64)
        for i, more in asked.options.get("bias", {}).items():
            biased[i] += more
        rank = output.sample if index == 0 else 0
        if abs(biased[token] - np.sort(biased)[-1 - rank]) > 1e-9:
            return f"token {index} is t{token}, not the likeliest"
    return ""


def lives(requests: int, seed: int = 0, each: int = 50, **fixed: Any) -> Wrong | None:
    """Live lives of `each` requests, until something is wrong or so many requests were made."""
    for number in range(-(-requests // each)):
        count, words = Life(seed * 1000 + number, **fixed).lived(each)
        if words:
            return Wrong(number * each + count, words)
    return None


def counted(requests: int, seed: int, each: int = 50) -> Iterator[dict[str, int]]:
    """Live correct lives, and give what each engine counted."""
    for number in range(-(-requests // each)):
        life = Life(seed * 1000 + number)
        _, words = life.lived(each)
        assert not words, f"seed {seed * 1000 + number}: {words}"
        yield life.engine.counts()
