"""Hugging Face transformers: what a model does with a layer of linear attention.

It hands its rows to the convolution first. Then it takes the state out of the cache, folds the rows into it, and
puts it back. A step of one row writes the rows of the convolution where they are, as the models do, unless the
cache records its past.
"""

from __future__ import annotations

from typing import Any

from kvspec.errors import CannotRun

try:
    import torch
except ImportError as e:
    raise CannotRun(f"torch cannot be imported ({e}); pip install 'kvconform[transformers]'") from e

KERNEL = 4
"""The rows of the convolution in front of a state, as most models have it."""


def folded(cache: Any, layer: int, keys: Any, values: Any) -> tuple[Any, Any]:
    """Hand the rows to the convolution, then fold them into the state: the arithmetic is the model's."""
    state = cache.get_recurrent_state(layer)
    filtered(cache, layer, KERNEL, torch.cat([channels(keys), channels(values)], dim=1))
    k, v = keys.float(), values.float()
    state = torch.zeros(*k.shape[:2], k.shape[3], v.shape[3]) if state is None else state
    for t in range(k.shape[2]):
        state = state / 2 + k[:, :, t, :, None] * v[:, :, t, None, :]
    cache.update_recurrent_state(state, layer)
    return keys[:, :, :0], values[:, :, :0]


def convolved(cache: Any, layer: int, size: int, keys: Any, values: Any) -> tuple[Any, Any]:
    """The rows that the convolution of `size` takes, zeros before the first: `[1, heads, size - 1 + n, dim]`."""
    rows = filtered(cache, layer, size, torch.cat([channels(keys), channels(values)], dim=1))
    wanted = size - 1 + keys.shape[2]
    whole = torch.nn.functional.pad(rows, (wanted, 0))[..., rows.shape[-1] :]
    split = keys.shape[1] * keys.shape[3]
    return heads(whole[:, :split], keys.shape[1]), heads(whole[:, split:], values.shape[1])


def filtered(cache: Any, layer: int, size: int, rows: Any) -> Any:
    """Give the rows of the convolution and these behind them, as many as the cache has: `[1, channels, width]`."""
    kept = cache.get_conv_state(layer)
    if kept is None or rows.shape[-1] != 1 or cache.is_recording_past(layer):
        return cache.update_conv_state(rows, layer, conv_kernel_size=size)
    whole = torch.cat([kept, rows], dim=-1)
    kept.copy_(whole[..., -kept.shape[-1] :])
    return whole


def channels(rows: Any) -> Any:
    """Rows `[1, heads, n, dim]` as `[1, heads * dim, n]`."""
    return rows.transpose(2, 3).flatten(1, 2)


def heads(rows: Any, n: int) -> Any:
    """The reverse, of so many heads."""
    return rows.unflatten(1, (n, -1)).transpose(2, 3)
