"""Attention over wide rows on tensor cores: `kernels/fast/wide_warps.cu`, compiled for a geometry.

Latent rows are the reason: DeepSeek's keys are 576 wide, and its values 512. All warps of a block share a tile.
So it takes f32 rows of 129 to 320 too: shared memory has no room for a ring of them for each warp.
"""

from __future__ import annotations

from kvgpu.runtimes.fast import warp_attention
from kvgpu.runtimes.fast.attention import Geometry
from kvgpu.runtimes.fast.warp_attention import TILE, WarpAttention
from kvspec.geometry import DTYPES

WIDTHS = range(64, 577, 64)
"""The widths of rows that it takes: each warp has the same number of steps."""

WIDEST = {"f16": WIDTHS[-1], "bf16": WIDTHS[-1], "f32": 320}
"""The dtypes of rows that it takes, and the largest width of each: two tiles have to fit into shared memory."""


class WarpWide(WarpAttention):
    """As `WarpAttention`, where keys or values are too wide for it."""

    kernel = "wide_warps"

    def _program(self, name: str) -> str:
        return source(self.geometry, name, self.workers)

    def _shared(self) -> int:
        return shared(self.geometry)


def taken(geometry: Geometry) -> bool:
    """Tell whether the kernel takes rows of this geometry."""
    return warp_attention.fits(geometry, WIDTHS, WIDEST)


def shared(geometry: Geometry) -> int:
    """Count the bytes of shared memory: two tiles of keys and of values."""
    return 2 * in_flight(geometry)


def in_flight(geometry: Geometry) -> int:
    """Count the bytes that are under way in a block while it computes: a tile of keys and one of values."""
    return 2 * TILE * warp_attention.widest(geometry) * DTYPES[geometry.dtype].itemsize


def source(geometry: Geometry, name: str, workers: int) -> str:
    """Write the whole program text for a geometry; there are parts for as many splits as `workers`."""
    sizes = warp_attention.heads(geometry) | {"WARPS": warp_attention.WARPS, "WIDE": 1}
    return warp_attention.program(geometry, name, workers, sizes, "fast/wide_warps.cu")
