"""The methods of a cache of several layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from kvspec.contract.vocabulary import Lengths
from kvspec.geometry import Array, Pair


class Layered(Protocol):
    """A cache opened as `layers`: one offset, and what the config's `of` says of each layer."""

    queries: int
    """The rows of the latest append; 0 once something else was done."""

    def append(self, keys: Any, values: Any) -> None:
        """Append n rows to each layer that appends give some: `[layers, kv_heads, n, k_dim]`, and of v_dim."""

    def encode(self, keys: Any, values: Any) -> None:
        """Take n rows of an encoder for each layer `cross`, `[such layers, kv_heads, n, k_dim]`, and of v_dim."""

    def lengths(self) -> Lengths:
        """Give the offset, which all layers have in common."""

    def histories(self) -> Sequence[Pair]:
        """Read for each layer, sharing ones too, the rows that the queries of the latest append attend to:
        `[1, kv_heads, K, k_dim]`, and of v_dim. K may differ. It is 0 in a layer `state`, and in a layer `cross`
        before there are rows of an encoder. Asked only right after an append."""

    def states(self) -> Mapping[int, Array]:
        """Read the state of each layer `state`, by its number: `[kv_heads, k_dim, v_dim]` in f32. Asked after every
        operation of an engine that claims such layers."""

    def mask(self) -> Array:
        """Make the masks of those queries: booleans `[layers of the model, 1, n, the greatest K]`, true where a
        query may attend. A layer's own K columns come first, in the order of its history; the others are false."""

    def can_rewind(self, to: int) -> bool:
        """Tell whether `rewind(to)` would be accepted now; change nothing."""

    def rewind(self, to: int) -> None:
        """Make `to` the offset of every layer; or change none and raise."""

    def free(self) -> None:
        """Return to the state of a cache never written."""
