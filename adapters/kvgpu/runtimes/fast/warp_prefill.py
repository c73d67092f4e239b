"""Attention of many queries on tensor cores: `kernels/fast/prefill_warps.cu`, compiled for a geometry.

A block reads rows once for 64 columns, which are heads of queries, or for 32 where rows are wide. In a geometry for
this kernel `queries` is 64.
"""

from __future__ import annotations

from kvgpu.runtimes.fast import warp_attention
from kvgpu.runtimes.fast.attention import Geometry
from kvgpu.runtimes.fast.warp_attention import TILE, WARPS, WarpAttention

QUERIES = 64
"""Columns of a block whose rows are no wider than 128, and the `queries` of every geometry for this kernel."""

TILES = 2
"""Tiles of a stage."""

WORTH_SPLITTING = 512
"""Least positions of a split: 16 stages, because a join has many columns to join."""


class WarpPrefill(WarpAttention):
    """As `WarpAttention`, of more queries than fill its columns."""

    kernel = "prefill_warps"

    def _program(self, name: str) -> str:
        return source(self.geometry, name, self.workers)

    def _shared(self) -> int:
        return shared(self.geometry)

    def _columns(self) -> int:
        return WARPS * columns(self.geometry)

    def _runs(self, count: int) -> int:
        return -(-count * self.geometry.group // self._columns())

    def _worth(self) -> int:
        return WORTH_SPLITTING


def columns(geometry: Geometry) -> int:
    """Give the columns of a warp: 16, or 8 where rows are wider than 128, because there are too few registers for
    more."""
    return 16 if warp_attention.widest(geometry) <= 128 else 8


def shared(geometry: Geometry) -> int:
    """Count the bytes of shared memory: two stages, and the parts of queries behind the first."""
    parts = 2 if geometry.dtype == "bf16" else 1
    return 2 * _stage_bytes(geometry) + parts * WARPS * columns(geometry) * geometry.k_dim * 2


def in_flight(geometry: Geometry) -> int:
    """Count the bytes that are under way in a block while it computes: a stage."""
    return _stage_bytes(geometry)


def _stage_bytes(geometry: Geometry) -> int:
    """Count the bytes of a stage, of keys and of values."""
    return 2 * TILES * TILE * warp_attention.widest(geometry) * 2


def source(geometry: Geometry, name: str, workers: int) -> str:
    """Write the whole program text for a geometry; there are parts for as many splits as `workers`."""
    sizes = {"WARPS": WARPS, "COLUMNS": columns(geometry), "TILES": TILES, "PREFILL": 1}
    heads = {"QUERIES": QUERIES, "PER_PASS": geometry.group}
    return warp_attention.program(geometry, name, workers, sizes | heads, "fast/prefill_warps.cu")
