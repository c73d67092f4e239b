"""mlx-lm: its models with the caches that it makes for them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import can_trim_prompt_cache, make_prompt_cache, trim_prompt_cache
from mlx_lm.utils import load_model

from kvadapters.probe.model import Model, from_model

DTYPES = {"f32": mx.float32, "bf16": mx.bfloat16, "f16": mx.float16}


def load(folder: str, dtype: str) -> Model:
    """Load a probe of safetensors."""
    model, _ = load_model(Path(folder))
    model.set_dtype(DTYPES[dtype])

    def decode(cache: Any, tokens: list[int]) -> Any:
        return np.array(model(mx.array([tokens]), cache=cache).astype(mx.float32))[0]

    return from_model(lambda: make_prompt_cache(model), decode, _rewind, copy.deepcopy)


def _rewind(cache: Any, tokens: int) -> None:
    """Trim a cache. Of more tokens than there are mlx-lm trims all. Raises ValueError where it trims none."""
    if not can_trim_prompt_cache(cache):
        raise ValueError("the cache cannot be trimmed")
    trim_prompt_cache(cache, tokens)
