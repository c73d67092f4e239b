"""What growing caches, rings and copy buffers have; masks, snapshots and speculation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from kvspec.contract.vocabulary import Lengths, Pair, Readable
from kvspec.geometry import Array
from kvspec.masks import Logical


class Snapshot(Protocol):
    """Rows saved from a cache: an immutable value until it is closed or consumed."""

    @property
    def start(self) -> int:
        """Position of the first row it holds."""

    @property
    def stop(self) -> int:
        """The offset it was taken at."""

    @property
    def nbytes(self) -> int:
        """Bytes of its rows; 0 once it is closed or consumed."""

    def close(self) -> None:
        """Return the memory. Refused when it is closed or consumed already."""


class Cache(Protocol):
    """A growing cache or a ring."""

    def append(self, keys: Array, values: Array) -> None:
        """Append n rows, `[B, H, n, k_dim]` and `[B, H, n, v_dim]`, at positions offset..offset+n-1."""

    def read(self, what: Readable) -> Pair | None:
        """Rows, owned by the caller: the history (what the queries of the append just done attend to; asked for
        right after it only), the view, or the state."""

    def lengths(self) -> Lengths:
        """Offset, retained, buffered, capacity."""

    def can_rewind(self, to: int) -> bool:
        """Whether `rewind(to)` would be accepted now; changes nothing."""

    def rewind(self, to: int) -> None:
        """Make `to` the offset; rows at and beyond it are dead."""

    def free(self) -> None:
        """Return to never written."""


class Masking(Protocol):
    """What the chapter `mask` adds to a cache."""

    def mask(self, logical: Logical) -> Array | None:
        """The mask for the history of the append just before, its columns in the history's order.

        `[1 or B, 1 or heads, L, K or 1]`, boolean (True means may attend) or f32 (added to the scores);
        None when no mask is needed.
        """


class Snapshotting(Protocol):
    """What the chapter `snapshot` adds to a cache. A snapshot that would hold nothing is None."""

    def snapshot(self, start: int) -> Snapshot | None:
        """Save the rows from position `start` on (a ring: all buffered rows)."""

    def restore(self, snapshot: Any, to: int) -> None:
        """Bring the cache to offset `to` with the rows saved; with None, a rewind."""

    def merge(self, parent: Any, child: Any) -> Snapshot | None:
        """One snapshot of two that meet; consumes both."""

    def split(self, snapshot: Any, at: int) -> tuple[Snapshot | None, Snapshot | None]:
        """Two snapshots of one, parent and child; consumes it."""


class Buffer(Protocol):
    """What is opened as `copy`: preallocated keys and values, `[capacity, kv_heads, dim]` in layout token,
    `[kv_heads, capacity, dim]` in layout head."""

    def copy(self, keys: Any, values: Any, n: int, at: int, sliding: bool) -> None:
        """Copy the first n rows of sources `[rows, kv_heads, dim]`, of any dtype that narrows to the buffer's or is
        the same, into the slots from `at` on; with `sliding`, modulo the capacity."""

    def alias(self, source: int, n: int) -> tuple[Any, Any]:
        """The buffer's own n slots from `source` on, as a source for `copy`."""

    def read(self, what: Readable) -> Pair:
        """Copies of the whole buffers, in their own layout ("state" is all there is to read)."""


class Round(Protocol):
    """A round of speculation over one cache a layer. Layers count from 0, those that have no cache included."""

    def draft(self, layer: int, keys: Any, values: Any) -> None:
        """Append drafts, rows as for `Cache.append`, on one layer."""

    def read(self, layer: int) -> Pair | None:
        """The history of the draft just before on that layer: what its queries attend to."""

    def mask(self, layer: int, logical: Logical) -> Array | None:
        """The mask for that history, as `Masking.mask`."""

    def offset(self, layer: int) -> int:
        """The position after the last draft on that layer."""

    def commit(self, n: int) -> None:
        """Keep the first n drafts on every layer, drop the others, end the round."""

    def abandon(self) -> None:
        """End the round; every draft is dropped."""


class Speculating(Protocol):
    """What the chapter `draft` adds to an adapter."""

    def speculate(self, caches: Sequence[Any], isolated: bool) -> Round:
        """A round over these caches, None for a layer that has none."""
