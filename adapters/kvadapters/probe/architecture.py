"""What a probe must know of a stock architecture: data, and two functions that write it under its own names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kvadapters.probe.arrays import Array
from kvadapters.probe.layout import HEAD_DIM, Layout
from kvadapters.probe.network import Network
from kvadapters.probe.views import View
from kvspec.errors import BadInput

Config = dict[str, Any]
Tensors = dict[str, Array]

FEED_FORWARD = 64
"""Dimensions of the feed-forward part, which adds zero."""


@dataclass(frozen=True)
class Architecture:
    """One stock architecture. `theta` has the base of RoPE for each kind of view that its layers may have, None for
    layers without RoPE."""

    name: str
    theta: Mapping[str, float | None]
    config: Callable[[Layout], Config]
    """Give what config.json says beside the sizes that all have."""
    tensors: Callable[[Network], Tensors]
    """Give the tensors of layers and output under the architecture's names."""
    alike: bool = False
    """Whether all layers have the same view."""
    scale: float = HEAD_DIM**-0.5
    neighbours: bool = False
    norms: str = ""
    """Whether queries and keys are normed `before` RoPE, or `after` it."""
    out_norm: bool = False
    sink: float | None = None
    latent: bool = False
    gated: bool = False
    """Whether what attention gives is multiplied by a gate."""
    scaled_embedding: bool = False
    """Whether the network multiplies embeddings by the root of the hidden size."""
    free_head_dim: bool = True
    eps: float = 1e-6
    lost: Mapping[str, str] = field(default_factory=dict)
    """What layers of a kind of view cannot show, in words."""

    def checked(self, layers: tuple[View, ...]) -> tuple[View, ...]:
        """Give the layers, if this architecture has such. Raises BadInput."""
        if odd := [str(view) for view in layers if view.kind not in self.theta]:
            raise BadInput(f"{self.name} has no layers of {', '.join(odd)}; it has {', '.join(self.theta)}")
        sizes = {view for view in layers if view.size}
        if len(sizes) > 1 or (self.alike and len(set(layers)) > 1):
            what = "all layers" if self.alike else f"all layers with a {next(iter(sizes)).kind}"
            raise BadInput(f"{self.name} has one size for {what}; given: {', '.join(map(str, layers))}")
        return layers

    def losses(self, layers: tuple[View, ...]) -> list[str]:
        """Tell what these layers cannot show."""
        return [f"layers that are {kind}: {what}" for kind, what in self.lost.items() if _any(layers, kind)]


def _any(layers: tuple[View, ...], kind: str) -> bool:
    return any(view.kind == kind for view in layers)


def sizes(layout: Layout) -> Config:
    """Give the sizes under the names that most architectures use."""
    return {
        "hidden_size": layout.hidden,
        "intermediate_size": FEED_FORWARD,
        "num_hidden_layers": len(layout.layers),
        "num_attention_heads": layout.heads,
        "num_key_value_heads": layout.kv_heads,
        "head_dim": HEAD_DIM,
        "vocab_size": layout.vocabulary,
        "max_position_embeddings": 1 << 17,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": layout.zero,
        "pad_token_id": layout.zero,
    }


def size_of(layout: Layout, kind: str) -> int | None:
    """Give the size that the views of a kind have, None without such layers."""
    return next((view.size for view in layout.layers if view.kind == kind), None)


def period(layout: Layout, kind: str = "window") -> int | None:
    """Give the period of windows, or of another kind of view: in each period, all layers but the last are windows.
    It is 0 if all layers are windows, 1 if none is, None if there is no period."""
    windows = [view.kind == kind for view in layout.layers]
    if all(windows):
        return 0
    fitting = (p for p in range(1, len(windows) + 1) if windows == [i % p < p - 1 for i in range(len(windows))])
    return next(fitting, None)


def types(layout: Layout) -> list[str]:
    """Name the layers as `layer_types` does."""
    names = {
        "full": "full_attention",
        "window": "sliding_attention",
        "chunk": "chunked_attention",
        "linear": "linear_attention",
    }
    return [names[view.kind] for view in layout.layers]
