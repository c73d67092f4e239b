"""Hugging Face transformers: its models with their own caches."""

from __future__ import annotations

import copy
from typing import Any

import torch
from transformers import AutoModelForCausalLM, DynamicCache, StaticCache

from kvadapters.probe.model import Model, from_model

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
MOST = 256
"""Rows of a static cache."""


def dynamic(folder: str, dtype: str) -> Model:
    """Load a probe; its caches grow, and slide where layers have windows."""
    model = _model(folder, dtype)
    return from_model(lambda: DynamicCache(config=model.config), _decode(model), _rewind, copy.deepcopy)


def static(folder: str, dtype: str, most: int | None = None) -> Model:
    """Load a probe; its caches have their size from the beginning, `MOST` if no other is given."""
    model = _model(folder, dtype)

    def opened() -> Any:
        return StaticCache(config=model.config, max_cache_len=MOST if most is None else most)

    return from_model(opened, _decode(model), None, copy.deepcopy)


def _model(folder: str, dtype: str) -> Any:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=DTYPES[dtype], local_files_only=True).eval()


def _decode(model: Any) -> Any:
    def decode(cache: Any, tokens: list[int]) -> Any:
        with torch.inference_mode():
            answer = model(torch.tensor([tokens]), past_key_values=cache, use_cache=True)
        return answer.logits[0].float().numpy()

    return decode


def _rewind(cache: Any, tokens: int) -> None:
    if cache.get_seq_length():  # a sliding layer without rows raises, which is known
        cache.crop(-tokens)
