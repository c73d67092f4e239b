"""Attention and RoPE: methods of all caches that attend."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol

from kvspec.geometry import Array
from kvspec.masks import CAUSAL, Logical
from kvspec.rope.scaling import Scaling
from kvspec.rope.sections import Sections


class Rope(NamedTuple):
    """How to rotate rows. `pairing` says which elements pair up, and `base` is the base of the frequencies. `dims`
    is how many elements of a row turn (None: all). `scaling` changes the frequencies for a longer context.
    `sections` says how many pairs each of a row's three positions turns (None: a row has one position, as in an
    attend)."""

    pairing: Literal["norm", "neox"] = "neox"
    base: int = 10000
    dims: int | None = None
    scaling: Scaling | None = None
    sections: Sections | None = None


class Attention(NamedTuple):
    """Options of queries. `through` is their mask, in position order. `splits` is the number of splits of their
    tiles. `rope` says how to rotate queries and keys first, at their positions. `scale` multiplies products (None:
    1 / sqrt(k_dim)). `softcap` caps scores by tanh, before the mask (0: no cap). `sinks` are the learned sinks in
    f32 (None: no sinks). Each query head has the logit of one more weight, which has no value. `parts` are the
    columns at which the rows are cut. Each part is attended to by itself, then the results are joined."""

    through: Logical = CAUSAL
    splits: int = 1
    rope: Rope | None = None
    scale: float | None = None
    softcap: float = 0.0
    sinks: tuple[float, ...] | None = None
    parts: tuple[int, ...] = ()


class Attending(Protocol):
    """Methods that the chapter `attention` adds to caches, stores (`of`: the layer) and paged caches (the
    sequence)."""

    def attend(
        self, queries: Any, keys: Any, values: Any, how: Attention, out: Any = None, of: int | None = None
    ) -> Any:
        """Append rows as `append` takes them, n of each sequence. Then n queries `[B, heads, n, k_dim]` in f32
        attend to what they see. The first query is at the position of the first row. The output `[B, heads, n,
        v_dim]` in f32 is written to `out` if that is given. B is 1 for stores and paged caches."""


class CapturedAttention(Protocol):
    """A captured attend of one row on a layer."""

    def replay(self, queries: Any, keys: Any, values: Any) -> Any:
        """Repeat the attend on these queries `[1, heads, 1, k_dim]` and rows `[1, kv_heads, 1, dim]`; return the
        output."""


class AttendingBatch(Protocol):
    """Methods that the chapter `attention` adds to a store that has batches. No masks and no RoPE here: sequences
    differ in length, and captured work has no position yet. `sinks` are as in `Attention`; they are handed over
    only where there are some."""

    def attend_batch(
        self, queries: Any, layer: int, splits: int = 1, out: Any = None, sinks: tuple[float, ...] | None = None
    ) -> Any:
        """Attend with one query `[m, heads, 1, k_dim]` for each sequence, at its last position, to its rows in a
        layer. Return the output `[m, heads, 1, v_dim]`; zeros for a sequence of length 0."""

    def capture_attend(
        self, layer: int, heads: int, splits: int = 1, sinks: tuple[float, ...] | None = None
    ) -> CapturedAttention:
        """Capture an attend of one row on a layer of the store; replays have these heads, splits and sinks."""


class Rotating(Protocol):
    """Methods that the chapter `rope` adds to an adapter."""

    def rotate(self, rows: Any, positions: Array, rope: Rope) -> Any:
        """Rotate each row of `[B, H, n, dim]` by its position, `[n]` in i64; return new rows of the same dtype."""
