"""Hugging Face transformers: the cache of MiniMax, in which some layers fold their tokens and the others see all.

It keeps states in a list beside its layers. It has no crop, so that nothing goes back. Masks are made as
the model makes them: of the whole cache, not of a layer.
"""

from __future__ import annotations

from typing import Any

from kvadapters.engines.transformers.caches import PAST, or_kernels
from kvadapters.engines.transformers.layers import Model
from kvadapters.layered import LayeredCache, views
from kvspec.errors import CannotRun
from kvspec.geometry import Config

try:
    import torch
    import transformers
    from transformers import masking_utils
    from transformers.models.minimax.modeling_minimax import MiniMaxCache

    from kvadapters.engines.torch import adapter
except ImportError as e:
    raise CannotRun(f"transformers cannot be imported ({e}); pip install 'kvconform[transformers]'") from e


def made(config: Config) -> Model:
    """Make a cache, which finds out by itself what its layers are."""
    of = views(config, "full", "state")
    types = ["linear_attention" if name == "state" else "full_attention" for name, _ in of]
    model = transformers.MiniMaxConfig(num_hidden_layers=len(of), layer_types=types, sliding_window=None)
    model._attn_implementation = "sdpa"
    return Model(MiniMaxCache(), model, of, list(range(len(of))))


def updated(model: Model, layer: int, keys: Any, values: Any) -> tuple[Any, Any]:
    """Update the rows of a layer, or take its state out, fold the rows in, and put it back."""
    if model.of[layer][0] == "full":
        found: tuple[Any, Any] = model.cache.update(keys, values, layer)
        return found
    state = model.cache.get_linear_cache(layer)
    k, v = keys.float(), values.float()
    state = torch.zeros(*k.shape[:2], k.shape[3], v.shape[3]) if state is None else state
    for t in range(k.shape[2]):
        state = state / 2 + k[:, :, t, :, None] * v[:, :, t, None, :]
    model.cache.set_linear_cache(layer, state)
    return keys[:, :, :0], values[:, :, :0]


def states(model: Model) -> dict[int, Any]:
    """Copies of the states."""
    found = {i: model.cache.get_linear_cache(i) for i, (name, _) in enumerate(model.of) if name == "state"}
    return {i: None if state is None else state[0].clone() for i, state in found.items()}


def counted(model: Model) -> int | None:
    """What the model takes for the length; a cache of states alone counts none."""
    return int(model.cache.get_seq_length()) if any(name == "full" for name, _ in model.of) else None


def mask(model: Model, layer: int, n: int) -> Any:
    """Make the one mask of all layers that see rows."""
    if model.of[layer][0] == "state":
        return torch.zeros(n, 0, dtype=torch.bool)
    found = masking_utils.create_causal_mask(
        config=model.configs, inputs_embeds=torch.empty(1, n, 1), attention_mask=None, **{PAST: model.cache}
    )
    return or_kernels(found, model.cache, layer, n)


minimax = adapter(
    "transformers-minimax",
    "transformers",
    kind="layers",
    make=made,
    update=updated,
    length=counted,
    states=states,
    mask=mask,
    reset=lambda model: model.cache.reset(),
    also=("full", "state", "unlike", "zero", "scribble"),
    cache=LayeredCache,
    dialect={"layers.shape": "first append"},
)
