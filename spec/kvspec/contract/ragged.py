"""The methods of ragged caches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from kvspec.geometry import Array, Pair


class Ragged(Protocol):
    """A cache opened as `ragged`: sequences of unequal lengths, padded to one block on the side `padding`. With a
    `window`, a query sees at most so many rows of its own sequence."""

    def feed(self, keys: Any, values: Any, lengths: Sequence[int]) -> None:
        """Append a block `[sequences, kv_heads, n, dim]`, in which sequence s owns `lengths[s]` columns: the first
        of them, or the last if padding is on the left."""

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
