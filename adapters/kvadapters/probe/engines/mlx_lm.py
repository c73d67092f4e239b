"""mlx-lm: its models with the caches that it makes for them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import (
    BatchKVCache,
    RotatingKVCache,
    can_trim_prompt_cache,
    make_prompt_cache,
    trim_prompt_cache,
)
from mlx_lm.utils import load_model

from kvadapters.probe.model import Batched, Model, from_model

DTYPES = {"f32": mx.float32, "bf16": mx.bfloat16, "f16": mx.float16}


def load(folder: str, dtype: str) -> Model:
    """Load a probe of safetensors."""
    model, _ = load_model(Path(folder))
    model.set_dtype(DTYPES[dtype])

    def decode(cache: Any, tokens: list[int]) -> Any:
        return np.array(model(mx.array([tokens]), cache=cache).astype(mx.float32))[0]

    return from_model(lambda: make_prompt_cache(model), decode, _rewind, copy.deepcopy)


def sinks(folder: str, dtype: str, window: int, kept: int) -> Model:
    """Load a probe; its caches keep the oldest rows beside a window that counts them."""
    whole = load(folder, dtype)
    layers = len(whole.open())
    return replace(whole, open=lambda: [RotatingKVCache(window, keep=kept) for _ in range(layers)])


def batched(folder: str, dtype: str) -> Batched:
    """Load a probe; its batches are those of its generator of batches."""
    model, _ = load_model(Path(folder))
    model.set_dtype(DTYPES[dtype])

    def feed(held: list[Any], tokens: Sequence[list[int]], _: str) -> list[Any]:
        columns, lengths = max(map(len, tokens)), list(map(len, tokens))
        padding = [columns - n for n in lengths]
        for cache in held if any(padding) else ():
            cache.prepare(lengths=lengths, right_padding=padding)
        ids = mx.array([[*of, *[0] * (columns - len(of))] for of in tokens])
        logits = np.array(model(ids, cache=held).astype(mx.float32))
        for cache in held if any(padding) else ():
            cache.finalize()
        return [of[:n] for of, n in zip(logits, lengths, strict=True)]

    def opened(sequences: int) -> list[Any]:
        return [BatchKVCache([0] * sequences) for _ in make_prompt_cache(model)]

    return Batched(opened, feed, _trim, _filter, copy.deepcopy)


def _trim(held: list[Any], counts: Sequence[int]) -> None:
    """Trim all by one number."""
    (count,) = set(counts)
    for cache in held:
        cache.trim(count)


def _filter(held: list[Any], order: Sequence[int]) -> list[Any]:
    for cache in held:
        cache.filter(list(order))
    return held


def _rewind(cache: Any, tokens: int) -> None:
    """Trim a cache. Of more tokens than there are mlx-lm trims all. Raises ValueError where it trims none."""
    if not can_trim_prompt_cache(cache):
        raise ValueError("the cache cannot be trimmed")
    trim_prompt_cache(cache, tokens)
