"""Engines to read: the probe's own network, answering as engines answer, right or with a fault."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kvadapters.probe import Probe

CASES = {
    "llama": "full,full",
    "mistral": "2*window 5",
    "qwen3": "full,window 5",
    "phi3": "2*window 5",
    "gemma3": "full,window 5",
    "gpt-oss": "full,window 5",
    "deepseek": "full,full",
    "llama4": "chunk 8,full",
    "qwen3-next": "linear,full",
}
"""Layers of each architecture."""


def small(name: str, layers: str, output: str = "weights", match: bool = False) -> Probe:
    """A probe with one kv head: 55 content ids, and quick."""
    probe = Probe.of(name, layers, output, match=match)
    return replace(probe, layout=replace(probe.layout, kv_heads=1))


def text(probe: Probe, rows: int, seed: int = 0, ids: int | None = None) -> list[int]:
    """A text of so many tokens: all different, or of so many ids."""
    draw = np.random.default_rng(seed)
    if ids is None:
        return [int(t) for t in draw.permutation(probe.layout.ids)[:rows]]
    return [int(t) for t in draw.integers(0, ids, rows)]


def logits(probe: Probe, tokens: list[int], **faults: Any) -> Any:
    """What the network answers, float64 [n, vocabulary]; `masks`, `positions` and `keys` plant faults."""
    return probe.network.logits(probe.network.hidden(tokens, **faults))


def logprobs(given: Any) -> Any:
    """Logprobs of all ids, in f32."""
    top = given.max(-1, keepdims=True)
    return (given - top - np.log(np.exp(given - top).sum(-1, keepdims=True))).astype(np.float32)


def top(given: Any, k: int) -> list[dict[int, float]]:
    """Logprobs of the k likeliest ids of each query."""
    return [{int(i): float(row[i]) for i in np.argsort(-row)[:k]} for row in logprobs(given)]


def without(sees: Any, query: int, row: int) -> Any:
    """A mask, but for one row that one query misses, or sees though it must not."""
    broken = sees.copy()
    broken[query, row] ^= True
    return broken
