"""Adapters of a probe: low-rank changes of its values (LoRA), which leave a mark on each row.

An adapter adds a pattern of its own to the fingerprint of every row, in every layer. So a row that was computed
with another adapter, or without one, is told from one that was computed with this one. Nothing else changes: what
is seen, the distances and the next token stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kvadapters.probe.architecture import Architecture
from kvadapters.probe.arrays import Array
from kvadapters.probe.eight_bits import eight_bits
from kvadapters.probe.layout import CONSTANT, HEAD_DIM, Layout
from kvadapters.probe.network import Layer, Network
from kvadapters.probe.views import View
from kvspec.errors import BadInput

ADAPTERS = ("x", "y")
"""The adapters that a probe may have."""
SHARE = 0.5
"""What an adapter adds to an element of a fingerprint, or takes off it."""
FUSED = ("phi3",)
"""Architectures whose values are a part of a larger matrix."""


@dataclass(frozen=True)
class LowRank:
    """The change of a layer's values: `up` [kv_heads * d, 1] times `down` [1, hidden]."""

    down: Array
    up: Array


def checked(architecture: Architecture, layers: Sequence[View]) -> None:
    """Raise BadInput where a layer has no values of its own that an adapter could change."""
    if architecture.latent or architecture.name in FUSED or any(view.kind == "linear" for view in layers):
        raise BadInput(f"no adapters of {architecture.name}: they change values, which each layer must have apart")


def pattern(layout: Layout, name: str) -> Array:
    """Give what an adapter adds to a fingerprint, [prints]: zeros for no adapter."""
    if not name:
        return np.zeros(layout.prints, np.float32)
    draw = np.random.default_rng([ADAPTERS.index(name), layout.prints])
    return draw.choice([-SHARE, SHARE], layout.prints).astype(np.float32)


def changes(layout: Layout, name: str) -> list[LowRank]:
    """Give an adapter's change of each layer."""
    up = np.zeros((layout.kv_heads * HEAD_DIM, 1), np.float32)
    up[layout.ids + 1 :, 0] = pattern(layout, name)
    return [LowRank(_constant(layout, number), up) for number in range(len(layout.layers))]


def _constant(layout: Layout, number: int) -> Array:
    """Read a 1 off a layer's hidden state, as a value of the constant does."""
    down = np.zeros((1, layout.hidden), np.float32)
    down[0, layout.constant] = eight_bits(layout.norm(number) / CONSTANT)
    return down


def changed(network: Network, layout: Layout, name: str) -> Network:
    """Give the network as it computes with an adapter. Raises BadInput if there is no such adapter."""
    if name not in ADAPTERS:
        raise BadInput(f"no adapter {name!r}; there are {', '.join(ADAPTERS)}")
    pairs = zip(network.layers, changes(layout, name), strict=True)
    layers = [replace(layer, value=layer.value + c.up @ c.down) for layer, c in pairs if isinstance(layer, Layer)]
    return replace(network, layers=layers)
