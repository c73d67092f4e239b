"""What all that attend have; and RoPE."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol

from kvspec.geometry import Array
from kvspec.masks import CAUSAL, Logical


class Rope(NamedTuple):
    """How rows are turned: which elements together, the base of the frequencies, and how many elements of a row
    (None: all)."""

    pairing: Literal["norm", "neox"] = "neox"
    base: int = 10000
    dims: int | None = None


class Attention(NamedTuple):
    """What goes with queries: the mask they look through, in position order; into how many splits their tiles are
    parted; how queries and keys are turned first, at their positions."""

    through: Logical = CAUSAL
    splits: int = 1
    rope: Rope | None = None


class Attending(Protocol):
    """What the chapter `attention` adds to caches, stores (`of`: the layer) and paged caches (the sequence)."""

    def attend(
        self, queries: Any, keys: Any, values: Any, how: Attention, out: Any = None, of: int | None = None
    ) -> Any:
        """Append rows as `append` takes them, n of each sequence; then n queries `[B, heads, n, k_dim]` in f32, the
        first at the position of the first row, attend to what they see. The output `[B, heads, n, v_dim]` in f32 is
        `out` where that is given. B is 1 for stores and paged caches."""


class CapturedAttention(Protocol):
    """A captured attend of one row on a layer."""

    def replay(self, queries: Any, keys: Any, values: Any) -> Any:
        """Do it again, on these queries `[1, heads, 1, k_dim]` and rows `[1, kv_heads, 1, dim]`: the output."""


class AttendingBatch(Protocol):
    """What the chapter `attention` adds to a store that has batches. No masks and no RoPE here: sequences differ in
    length, and what is captured has no position yet."""

    def attend_batch(self, queries: Any, layer: int, splits: int = 1, out: Any = None) -> Any:
        """A query `[m, heads, 1, k_dim]` at the last position of each sequence attends to what a layer holds of it:
        the output `[m, heads, 1, v_dim]`; zeros for a sequence of length 0."""

    def capture_attend(self, layer: int, heads: int, splits: int = 1) -> CapturedAttention:
        """An attend of one row on a layer of the store, captured."""


class Rotating(Protocol):
    """What the chapter `rope` adds to an adapter."""

    def rotate(self, rows: Any, positions: Array, rope: Rope) -> Any:
        """Rows `[B, H, n, dim]` turned each by its position, `[n]` in i64: new rows of the same dtype."""
