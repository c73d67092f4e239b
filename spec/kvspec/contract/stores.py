"""The methods of caches of many layers or sequences: stores and their batches, ragged caches, and layered ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from kvspec.contract.vocabulary import Lengths
from kvspec.geometry import Array, Config, Pair


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
        """Allocate for m sequences, all of length 0. `most` is how many are allowed (None: 32)."""

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


class Ragged(Protocol):
    """A cache opened as `ragged`: sequences of unequal lengths, padded to one block on the side `padding`. With a
    `window`, a query sees at most so many rows of its own sequence."""

    def feed(self, keys: Any, values: Any, lengths: Sequence[int]) -> None:
        """Append a block `[sequences, kv_heads, n, dim]`, in which sequence s owns `lengths[s]` columns: the first
        of them, or the last if padding is on the left."""

    def attend_block(self, queries: Any, keys: Any, values: Any, lengths: Sequence[int]) -> Any:
        """Feed a block, and have a query of each of its columns attend: `[sequences, heads, n, k_dim]` in f32. Give
        the output `[sequences, heads, n, v_dim]` in f32; that of padding may hold anything."""

    def trim(self, counts: Sequence[int]) -> None:
        """Drop the newest `counts[s]` rows of each sequence s."""

    def filter(self, order: Sequence[int]) -> None:
        """Keep these sequences, in this order."""

    def reorder(self, order: Sequence[int]) -> None:
        """Put sequence `order[s]` in the place of each sequence s."""

    def repeat(self, times: int) -> None:
        """Repeat each sequence several times, the copies side by side."""

    def extend(self, other: Ragged) -> None:
        """Add copies of the other cache's sequences behind its own."""

    def join(self, others: Sequence[Any]) -> None:
        """Replace the sequences by copies of the rows of these growing caches, or rings over a window."""

    def extract(self, sequence: int, into: Any) -> None:
        """Replace the rows of a growing cache, or of a ring over a window, by a copy of a sequence's rows."""

    def sequences(self) -> Sequence[int]:
        """Give the length of each sequence, which is the position of its next row."""

    def read_sequence(self, sequence: int) -> Pair:
        """Read the rows of a sequence, `[kv_heads, n, dim]`, without padding; over a window those that its next
        query would see beside its own."""

    def positions(self) -> Array | None:
        """Give the position of each row of the last block, `[sequences, n]`, below 0 for padding; None unless the
        newest change was a feed."""

    def history(self) -> Pair:
        """Read the block that the queries of the last feed attend to, `[sequences, kv_heads, width, dim]`. Padding
        may hold anything. Asked only right after a feed."""

    def starts(self) -> Sequence[int]:
        """Give for each sequence the column of that block in which its first row stands."""

    def holds(self) -> Sequence[int]:
        """Give for each sequence how many rows are kept, which are its newest; asked only if there is a window."""

    def mask(self) -> Array:
        """Make the mask of the last feed's queries, booleans `[sequences, 1, n, width]`: true where a query may
        attend. Queries that are padding may attend to anything."""


class Layered(Protocol):
    """A cache opened as `layers`: one offset, and what the config's `of` says of each layer."""

    queries: int
    """The rows of the latest append, or the drafts of the latest branch; 0 once something else was done."""

    def append(self, keys: Any, values: Any) -> None:
        """Append n rows to each layer that appends give some: `[layers, kv_heads, n, k_dim]`, and of v_dim."""

    def encode(self, keys: Any, values: Any) -> None:
        """Take n rows of an encoder for each layer `cross`, `[such layers, kv_heads, n, k_dim]`, and of v_dim."""

    def branch(self, keys: Any, values: Any, on: Sequence[int] | None = None) -> None:
        """Take n drafts, rows that hang each on the draft of a number in `on` (-1: none), or on the one before."""

    def settle(self, draft: int) -> None:
        """Append the drafts on the way to this one, and itself, in all layers; -1 appends none. Drop the others."""

    def lengths(self) -> Lengths:
        """Give the offset, which all layers have in common."""

    def histories(self) -> Sequence[Pair]:
        """Read for each layer, sharing ones too, the rows that these queries attend to, `[1, kv_heads, K, dim]`. K
        may differ. It is 0 in a layer `state`, and in one `cross` without an encoder. Asked right after those."""

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
