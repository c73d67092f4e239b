"""Judges an output of a serving engine by what the same network answers in float64, without a cache."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from kvadapters.probe import Precision, Probe, read
from kvadapters.probe.heads import AMPLITUDE
from kvadapters.probe.weights import WEIGHT_LOGIT
from serving_engine import Output, Settings
from serving_engine.model import Model

Checkpoint = tuple[str, str, bool, bool]
"""An architecture, its layers, and whether it has adapters, and heads that match keys."""


@cache
def loaded(architecture: str, layers: str, adapters: bool = False, match: bool = False) -> tuple[Probe, Model]:
    """A probe with one kv head, which is quick, and the engine's model of its checkpoint."""
    probe = Probe.of(architecture, layers, adapters=adapters, match=match)
    probe = replace(probe, layout=replace(probe.layout, kv_heads=1))
    with tempfile.TemporaryDirectory() as folder:
        probe.write(folder)
        return probe, Model(Path(folder))


@dataclass(frozen=True)
class Asked:
    """A request."""

    prompt: list[int]
    new: int
    options: dict[str, Any] = field(default_factory=dict)
    places: range = range(0)
    """Where tokens are handed in as vectors, and 0 as their ids."""

    @property
    def ids(self) -> list[int]:
        return [0 if at in self.places else token for at, token in enumerate(self.prompt)]

    @property
    def adapter(self) -> str:
        return str(self.options.get("adapter", ""))

    @property
    def shares(self) -> tuple[str, str]:
        return str(self.options["salt"]), self.adapter

    @property
    def samples(self) -> int:
        return int(self.options.get("samples", 1))


def wrong_in(checkpoint: Checkpoint, asked: Asked, output: Output, settings: Settings) -> str:
    """Say what is wrong with an output, by what float64 answers to the same tokens."""
    text, (probe, _) = [*asked.prompt, *output.tokens][:-1], loaded(*checkpoint)
    probe = probe.with_adapter(asked.adapter)
    given, shape = output.logprobs, (len(output.tokens), probe.layout.vocabulary)
    if given.shape != shape or given.dtype != np.float32 or not output.tokens:
        return f"logprobs are {given.dtype} {given.shape}, not float32 {shape}"
    if foreign := [token for token in text if token >= probe.layout.ids]:
        return f"a token is id {foreign[0]}, which nothing makes likely"
    if not np.isfinite(given).all():
        return "logprobs are not finite"
    if settings.rows == "f32":
        right = _logprobs(checkpoint, asked.adapter, tuple(text))[len(asked.prompt) - 1 :]
        if np.abs(given - right).max() > bound(len(text)):
            return _told(probe, text, output, Precision("f32")) or "other logprobs than float64's"
    elif words := _told(probe, text, output, Precision("f32", rows="q8_0")):
        return words
    return _ended(asked, output) or _chosen(asked, output)


@lru_cache(1000)
def _logprobs(checkpoint: Checkpoint, adapter: str, text: tuple[int, ...]) -> Any:
    network = _network(checkpoint, adapter)
    logits = network.logits(network.hidden(text))
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


@cache
def _network(checkpoint: Checkpoint, adapter: str) -> Any:
    return loaded(*checkpoint)[0].with_adapter(adapter).network


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
