"""The methods of growing caches, rings and copy buffers; masks, snapshots and speculation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from kvspec.contract.vocabulary import Lengths, Readable
from kvspec.geometry import Array, Pair
from kvspec.masks import Logical
from kvspec.parcels import Parcel


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
        """Return the memory. Raises Refused if it is closed or consumed already."""


class Cache(Protocol):
    """A growing cache, a ring or a bounded cache."""

    def append(self, keys: Array, values: Array) -> None:
        """Append n rows, `[B, H, n, k_dim]` and `[B, H, n, v_dim]`, at positions offset..offset+n-1."""

    def read(self, what: Readable) -> Pair | None:
        """Return rows that the caller then owns: the history, the view, or the state. The history is the rows that
        the queries of the latest append attend to; it is only asked for right after one."""

    def lengths(self) -> Lengths:
        """Give offset, retained, buffered and capacity."""

    def can_rewind(self, to: int) -> bool:
        """Tell whether `rewind(to)` would be accepted now; change nothing."""

    def rewind(self, to: int) -> None:
        """Make `to` the offset; rows at and beyond it are dead."""

    def free(self) -> None:
        """Return to the state of a cache never written."""


class Masking(Protocol):
    """Methods that the chapter `mask` adds to a cache."""

    def mask(self, logical: Logical) -> Array | None:
        """Make the mask for the history of the latest append, with columns in the history's order.

        `[1 or B, 1 or heads, L, K or 1]`, boolean (True means may attend) or f32 (added to the scores);
        None when no mask is needed.
        """


class Positioned(Protocol):
    """Methods that the chapter `sink` adds to a cache. An engine that tells no positions leaves them out."""

    def positions(self) -> Sequence[int]:
        """Give the positions of the rows that the newest query of the latest append sees, oldest first."""


class Keeping(Protocol):
    """The method that the chapter `sink` adds to a cache whose rows a caller chooses. An engine that drops rows by
    their age alone leaves it out."""

    def keep(self, positions: Sequence[int]) -> None:
        """Drop every row but those that were appended at these positions, which the newest query sees; they may be
        named in any order."""


class Snapshotting(Protocol):
    """Methods that the chapter `snapshot` adds to a cache; to one of several layers the first two. A snapshot that
    would hold nothing is None."""

    def snapshot(self, start: int) -> Snapshot | None:
        """Save the rows from position `start` on. A ring saves all buffered rows, and layers save what each
        needs."""

    def restore(self, snapshot: Any, to: int) -> None:
        """Bring the cache to offset `to` with the saved rows; with None, rewind."""

    def merge(self, parent: Any, child: Any) -> Snapshot | None:
        """Merge two snapshots that meet into one; consumes both."""

    def split(self, snapshot: Any, at: int) -> tuple[Snapshot | None, Snapshot | None]:
        """Split a snapshot into two, parent and child; consumes it."""


class Questioning(Protocol):
    """Methods that the chapter `questions` adds to a cache, or to one of several layers. They change nothing."""

    def can_append(self, n: int) -> bool:
        """Tell whether an append of n rows of its geometry would be accepted now."""

    def can_restore(self, snapshot: Any, to: int) -> bool:
        """Tell whether `restore(snapshot, to)` would be accepted now; only of a cache that has snapshots."""


class Packing(Protocol):
    """Methods that the chapter `parcels` adds to a cache. A pool packs one of its sequences, and unpacks to a new
    one, whose number it gives. A cache of a rank (`config.rank`) packs its own heads, and finds them in what
    arrives. One of several layers packs a list, a part for each layer; it takes what arrives in all or none."""

    def pack(self, sequence: int = 0) -> Parcel | list[Parcel]:
        """Give the rows that queries at the offset or later see, on the host, with a descriptor; change nothing."""

    def unpack(self, *parts: Parcel) -> int | None:
        """Hold the rows of these parcels, one or several that have its heads among them, and no others. A pool
        holds them beside those of other sequences."""


class Transferring(Protocol):
    """Methods that the chapter `parcels` adds to a pool whose pages others read and write while it goes on."""

    def send(self, sequence: int) -> int:
        """Begin to send the rows of a sequence, and give the number of the transfer. Until it has ended, its pages
        are not written and not free."""

    def transfers(self) -> Sequence[int]:
        """Give the rows of each transfer in flight, by its number; -1 for one below that is not in flight."""

    def sent(self, transfer: int) -> Parcel:
        """End it: give the rows that it read."""

    def expect(self, n: int) -> int:
        """Take pages for n rows that are to come, which nobody sees, and give the number of the transfer."""

    def arrive(self, transfer: int, *parts: Parcel) -> int:
        """End it: hold the rows of these parcels in its pages, and give the number of their new sequence."""

    def lose(self, transfer: int) -> None:
        """End a transfer without its rows: what it was sent from goes on, and what it was to go to is free."""


class Buffer(Protocol):
    """A buffer opened as `copy`: preallocated keys and values, `[capacity, kv_heads, dim]` in layout token,
    `[kv_heads, capacity, dim]` in layout head."""

    def copy(self, keys: Any, values: Any, n: int, at: int, sliding: bool) -> None:
        """Copy the first n rows of sources `[rows, kv_heads, dim]`, of the buffer's dtype or one that narrows to
        it, into the slots from `at` on; with `sliding`, modulo the capacity."""

    def alias(self, source: int, n: int) -> tuple[Any, Any]:
        """Give the buffer's own n slots from `source` on, as a source for `copy`."""

    def read(self, what: Readable) -> Pair:
        """Return copies of the whole buffers, in their own layout; only "state" can be read."""


class Round(Protocol):
    """A round of speculation over one cache a layer. Layers count from 0 and include those without a cache."""

    def draft(self, layer: int, keys: Any, values: Any, on: Sequence[int] | None = None) -> None:
        """Append drafts on one layer, with rows as for `Cache.append`. `on` says for each the number of the layer's
        draft that it hangs on, or -1; without it each hangs on the one before. Handed in only where it is said."""

    def read(self, layer: int) -> Pair | None:
        """Return the history of the latest draft on that layer: the rows its queries attend to."""

    def mask(self, layer: int, logical: Logical) -> Array | None:
        """Make the mask for that history, as `Masking.mask` does."""

    def offset(self, layer: int) -> int:
        """Give the position after the last draft on that layer."""

    def positions(self, layer: int) -> Sequence[int]:
        """Give the positions of the latest drafts on that layer; only asked for where they hang on others."""

    def commit(self, n: int) -> None:
        """Keep the first n drafts on every layer, drop the others, end the round."""

    def choose(self, draft: int) -> None:
        """Keep the draft of this number and those that it hangs on, on every layer, drop the others, end the
        round."""

    def abandon(self) -> None:
        """End the round; every draft is dropped."""


class Speculating(Protocol):
    """Methods that the chapter `draft` adds to an adapter."""

    def speculate(self, caches: Sequence[Any], isolated: bool) -> Round:
        """Begin a round over these caches; None for a layer without one."""
