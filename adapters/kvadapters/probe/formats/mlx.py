"""What mlx-lm takes: which layers, under which names, and what its configuration says beside Hugging Face's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from kvadapters.probe.architecture import Architecture, Config, Tensors, period
from kvadapters.probe.architectures.gpt_oss import EXPERTS, WIDTH
from kvadapters.probe.arrays import Array
from kvadapters.probe.layout import Layout
from kvspec.errors import BadInput


@dataclass(frozen=True)
class Dialect:
    """How mlx-lm takes an architecture: the kinds of its layers, and what is done to its tensors."""

    kinds: tuple[str, ...] = ("full",)
    repeated: str = ""
    """The kind of all layers but the last of each period, which is full."""
    named: str = ""
    """What the configuration calls the period."""
    fixed: int = 0
    """How long the period is, where mlx-lm knows one alone."""
    changed: Callable[[Layout, Tensors], Tensors] = lambda _, tensors: tensors
    whole: Callable[[Config, Layout], Config] = lambda config, _: config
    """Makes its configuration of Hugging Face's."""

    def config(self, given: Config, layout: Layout) -> Config:
        """Give the configuration that mlx-lm reads, of Hugging Face's."""
        return self.whole(given | ({self.named: period(layout, self.repeated)} if self.named else {}), layout)


def _unrounded(layout: Layout, tensors: Tensors) -> Tensors:
    """Make good that mlx-lm rounds the factor of embeddings to bf16."""
    factor = np.float32(layout.hidden**0.5)
    name, rounded = "model.embed_tokens.weight", factor.astype(ml_dtypes.bfloat16).astype(np.float32)
    return tensors | {name: tensors[name] * (factor / rounded)}


def _experts(layout: Layout, tensors: Tensors) -> Tensors:
    """Give experts, which add zero, as a layer each of gates, projections and what they give."""
    found = {name: tensor for name, tensor in tensors.items() if ".experts." not in name}
    for number in range(len(layout.layers)):
        for part, given, wide in (
            ("gate", WIDTH, layout.hidden),
            ("up", WIDTH, layout.hidden),
            ("down", layout.hidden, WIDTH),
        ):
            name = f"model.layers.{number}.mlp.experts.{part}_proj"
            found[f"{name}.weight"] = np.zeros((EXPERTS, given, wide), np.float32)
            found[f"{name}.bias"] = np.zeros((EXPERTS, given), np.float32)
    return found


def _linear(_: Layout, tensors: Tensors) -> Tensors:
    """Put a convolution's taps before its one input, and add the 1 to norms: mlx-lm does so only where there are
    experts."""
    return {name: _as_mlx_has(name, tensor) for name, tensor in tensors.items()}


def _as_mlx_has(name: str, tensor: Array) -> Array:
    if name.endswith("conv1d.weight"):
        return np.moveaxis(tensor, 2, 1)
    return tensor + 1 if "norm.weight" in name and "linear_attn" not in name else tensor


def _language_model(_: Layout, tensors: Tensors) -> Tensors:
    """Say that they are of the part that reads text."""
    return {f"language_model.{name}": tensor for name, tensor in tensors.items()}


def _text_part(config: Config, layout: Layout) -> Config:
    """Put a configuration into one of several parts. No layer has experts: they would begin behind the last one."""
    more = {"interleave_moe_layer_step": len(layout.layers) + 1, "rope_scaling": None}
    return {"model_type": "llama4", "text_config": config | more, "eos_token_id": layout.zero}


DIALECTS = {
    "llama": Dialect(),
    "mistral": Dialect(),
    "qwen3": Dialect(),
    "phi3": Dialect(),
    "gemma3": Dialect(("full", "window"), "window", "sliding_window_pattern", changed=_unrounded),
    "gpt-oss": Dialect(("full", "window"), changed=_experts),
    "deepseek": Dialect(),
    "llama4": Dialect(("full", "chunk"), "chunk", fixed=4, changed=_language_model, whole=_text_part),
    "qwen3-next": Dialect(("full", "linear"), "linear", "full_attention_interval", changed=_linear),
}


def dialect(architecture: Architecture, layout: Layout) -> Dialect:
    """Give how mlx-lm takes a probe. Raises BadInput where it cannot."""
    found = DIALECTS[architecture.name]
    if odd := [str(view) for view in layout.layers if view.kind not in found.kinds]:
        raise BadInput(f"mlx-lm has no layers of {', '.join(odd)} in {architecture.name}")
    have = period(layout, found.repeated)
    if found.repeated and (not have or found.fixed not in (0, have)):
        layers, size = ", ".join(map(str, layout.layers)), f" of {found.fixed}" * (found.fixed > 0)
        raise BadInput(
            f"mlx-lm has layers that are {found.repeated} in a period{size} whose last layer is full: not {layers}"
        )
    return found
