"""The methods of stores of many layers, and of their batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from kvspec.geometry import Config, Pair


class Store(Protocol):
    """A store, opened as `store`: for each layer keys and values `[kv_heads, max_len, dim]`, and a length."""

    def init(self, config: Config) -> None:
        """Initialise the store again, with this config."""

    def append(self, keys: Any, values: Any, layer: int | None = None) -> None:
        """Write rows `[layers, kv_heads, n, dim]` behind the length of every layer; or `[1, ...]` of one."""

    def lengths(self) -> Sequence[int]:
        """Give the length of each layer."""

    def read(self, layer: int) -> Pair:
        """Give the rows of a layer up to its length, `[kv_heads, length, dim]`."""

    def set_length(self, layer: int, n: int) -> None:
        """Set the length of a layer."""

    def rollback(self, to: int) -> None:
        """Lower the length of every longer layer to `to`."""

    def reset(self) -> None:
        """Set every length to 0."""

    def zero(self) -> None:
        """Set every length to 0 and every row to zeros."""

    def save(self) -> Sequence[Pair]:
        """Make a snapshot on the host: for each layer rows `[kv_heads, length, dim]`, contiguous."""

    def load(self, saved: Sequence[Pair]) -> None:
        """Put such a snapshot back, with its lengths."""

    def fingerprint(self, position: int) -> float:
        """Sum the key row of layer 0, head 0, at a position."""


class Captured(Protocol):
    """A captured step of a batch."""

    def replay(self, keys: Any, values: Any) -> None:
        """Repeat the work on these rows `[layers, m, kv_heads, dim]`."""


class Batching(Protocol):
    """Methods that the chapter `batch` adds to a store: m sequences, per layer `[m, kv_heads, max_len, dim]`."""

    def batch(self, m: int, most: int | None = None) -> None:
        """Allocate for m sequences, all of length 0; `most` is how many are allowed (None: 32)."""

    def sequences(self) -> Sequence[int] | None:
        """Give the length of each sequence; None without a batch."""

    def read_sequence(self, layer: int, sequence: int) -> Pair:
        """Give a sequence's rows in a layer, `[kv_heads, n, dim]`: up to its length, or what the layer holds."""

    def scatter(self, sequence: int, n: int, layer: int | None = None) -> None:
        """Copy the store's first n rows into a sequence's place, of one layer or of all, and set its length."""

    def step(self, keys: Any, values: Any) -> None:
        """Append one row `[layers, m, kv_heads, dim]` to every sequence in every layer."""

    def rollback_sequence(self, sequence: int, to: int) -> None:
        """Lower the length of one sequence to `to`, if it is longer."""

    def reset_batch(self) -> None:
        """Set every sequence's length to 0."""

    def free_batch(self) -> None:
        """Return the batch's memory."""

    def addresses(self) -> Sequence[int]:
        """Give the addresses of the batch's buffers; empty without a batch. Adapters below level storage may leave
        this out."""

    def capture(self) -> Captured:
        """Capture a step of this batch."""
