"""Hugging Face transformers: its models with their own caches."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoModelForCausalLM, DynamicCache, StaticCache

from kvadapters.probe.model import Batched, Model, from_model

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


@dataclass
class Padded:
    """A cache of a batch, and the attention mask that its caller keeps, [sequences, columns]: 1 for a row."""

    cache: Any
    rows: Any


def padded(folder: str, dtype: str, pad: int) -> Batched:
    """Load a probe; its batches are padded with an id, and have an attention mask."""
    model = _model(folder, dtype)

    def feed(held: Padded, tokens: Sequence[list[int]], side: str) -> list[Any]:
        columns = max(map(len, tokens))
        ids, owned = torch.full((len(tokens), columns), pad), torch.zeros(len(tokens), columns, dtype=torch.long)
        for s, of in enumerate(tokens):
            own = slice(columns - len(of), columns) if side == "left" else slice(0, len(of))
            ids[s, own], owned[s, own] = torch.tensor(of, dtype=torch.long), 1
        held.rows = torch.cat([held.rows, owned], 1)
        positions = (held.rows.cumsum(1) - 1).clamp(min=0)[:, -columns:]
        more = {"attention_mask": held.rows, "position_ids": positions}
        with torch.inference_mode():
            logits = model(ids, past_key_values=held.cache, use_cache=True, **more).logits.float()
        return [of[own.bool()].numpy() for of, own in zip(logits, owned, strict=True)]

    def opened(sequences: int) -> Padded:
        return Padded(DynamicCache(config=model.config), torch.zeros(sequences, 0, dtype=torch.long))

    return Batched(opened, feed, _hide, _arrange, copy.deepcopy)


def _hide(held: Padded, counts: Sequence[int]) -> None:
    """Hide the newest rows of each sequence from all later queries: a crop takes the same columns of all."""
    behind = held.rows.flip(1).cumsum(1).flip(1)
    held.rows = held.rows * (behind > torch.tensor(list(counts))[:, None])


def _arrange(held: Padded, order: Sequence[int]) -> Padded:
    """Rearrange a cache and its mask."""
    places = torch.tensor(list(order))
    if held.rows.shape[1]:
        held.cache.batch_select_indices(places)
    held.rows = held.rows[places]
    return held


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
