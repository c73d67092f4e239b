"""Attention over latent rows by what only compute capability 9.0 has: `kernels/fast/latent_hopper.cu`.

A latent row is a key whose value is its beginning (form `latent`), so it is read once. The kernel takes few queries
and many. It never ran on a GPU, only under emulation: see `hopper_prefill`.
"""

from __future__ import annotations

from kvgpu.runtimes.fast import warp_attention
from kvgpu.runtimes.fast.attention import Call, Geometry
from kvgpu.runtimes.fast.hopper_prefill import BEFORE, PARTS, WARPS, HopperPrefill, mapped
from kvgpu.runtimes.tensor_map import ITEM, TensorMap
from kvspec.forms import LATENT
from kvspec.geometry import Config

COLUMNS, STAGE = 64, 64
"""Columns of a block, heads times queries, and the `queries` of every geometry for it; positions of a stage."""

WIDTHS, VALUES = range(128, 577, 64), (128, 256, 512)
"""The widths of keys that it takes, and of values: those of 512 are 128 registers of a lane."""

BARRIERS = 48
"""Bytes of its barriers."""


class HopperLatent(HopperPrefill):
    """As `HopperPrefill`, over rows in the form `latent`, which begin at bytes."""

    kernel = "hopper_latent"

    def _program(self, name: str) -> str:
        return source(self.geometry, name, self.workers)

    def _shared(self) -> int:
        return shared(self.geometry)

    def _columns(self) -> int:
        return COLUMNS

    def _begins(self, call: Call) -> tuple[int, int, int, int]:
        """Give the beginnings in elements: values begin where keys do."""
        queries, out, keys, _ = super()._begins(call)
        return queries, out, keys // ITEM, keys // ITEM

    def _maps(self, call: Call) -> tuple[TensorMap, ...]:
        return (mapped(self.device, call.rows.place.keys, call.rows.place.keys_at, self.geometry.k_dim),)


def readable(config: Config) -> bool:
    """Tell whether it reads the rows of a cache where they lie."""
    return config.form == LATENT and _fits(config.dtype, config.k_dim, config.v_dim)


def taken(geometry: Geometry) -> bool:
    """Tell whether the kernel takes rows of this geometry."""
    return geometry.form == LATENT and _fits(geometry.dtype, geometry.k_dim, geometry.v_dim)


def _fits(dtype: str, k_dim: int, v_dim: int) -> bool:
    return dtype in PARTS and k_dim in WIDTHS and v_dim in VALUES and v_dim <= k_dim


def in_flight(geometry: Geometry) -> int:
    """Count the bytes that are under way in a block while it computes: a stage."""
    return STAGE * geometry.k_dim * ITEM


def shared(geometry: Geometry) -> int:
    """Count the bytes of shared memory: two stages, the first part of the queries, weights, and barriers."""
    return 2 * in_flight(geometry) + COLUMNS * (geometry.k_dim + STAGE) * ITEM + BARRIERS


def source(geometry: Geometry, name: str, workers: int) -> str:
    """Write the whole program text for a geometry; there are parts for as many splits as `workers`."""
    sizes = {"WARPS": WARPS, "STAGE": STAGE, "BLOCK_COLUMNS": COLUMNS, "COLUMNS": 16}
    defined = sizes | {"QUERIES": COLUMNS, "PER_PASS": geometry.group, "PREFILL": 1, "LATENT": 1}
    return warp_attention.program(geometry, name, workers, defined, *BEFORE, "fast/latent_hopper.cu")
