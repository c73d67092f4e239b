"""The kernels for tensor cores: which of them attends for a geometry."""

from __future__ import annotations

from types import ModuleType

from kvgpu.runtimes.fast import hopper_latent, hopper_prefill, warp_attention, warp_prefill, warp_wide
from kvgpu.runtimes.fast.attention import Geometry
from kvgpu.runtimes.fast.hopper_latent import HopperLatent
from kvgpu.runtimes.fast.hopper_prefill import HopperPrefill
from kvgpu.runtimes.fast.warp_attention import WarpAttention, WarpDevice
from kvgpu.runtimes.fast.warp_prefill import WarpPrefill
from kvgpu.runtimes.fast.warp_wide import WarpWide

MADE: dict[ModuleType, type[WarpAttention]] = {
    warp_attention: WarpAttention,
    warp_prefill: WarpPrefill,
    warp_wide: WarpWide,
    hopper_prefill: HopperPrefill,
    hopper_latent: HopperLatent,
}
"""The class of each kernel, by the module that has it and writes its text."""


def taken(geometry: Geometry) -> bool:
    """Tell whether one of them takes rows of this geometry."""
    if geometry.form:
        return hopper_latent.taken(geometry)
    return warp_attention.taken(geometry) or warp_wide.taken(geometry)


def chosen(geometry: Geometry, count: int, beside: int | None = None, hopper: bool = False) -> Geometry:
    """Give the geometry for `count` queries. If there are more than `beside`, it is that of the kernel for many.
    By default `beside` is as many as fill the columns of the kernel for few. Wide and f32 rows have no kernel for
    many. With `hopper` it is for compute capability 9.0 alone, where that takes the rows. Latent rows have one
    kernel, for any number."""
    if geometry.form:
        return geometry._replace(queries=hopper_latent.COLUMNS)
    most = warp_attention.together(geometry)
    many = warp_attention.taken(geometry) and geometry.dtype != "f32"
    if many and count > (most if beside is None else beside):
        new = hopper and hopper_prefill.taken(geometry)
        return geometry._replace(queries=hopper_prefill.QUERIES if new else warp_prefill.QUERIES)
    return geometry._replace(queries=most if count > 1 else 1)


def module(geometry: Geometry) -> ModuleType:
    """Give the module of the kernel that a geometry is for: with `source`, `shared` and `in_flight`."""
    if geometry.form:
        return hopper_latent
    if geometry.queries == hopper_prefill.QUERIES:
        return hopper_prefill
    if geometry.queries == warp_prefill.QUERIES:
        return warp_prefill
    return warp_attention if warp_attention.taken(geometry) else warp_wide


def made(runtime: WarpDevice, geometry: Geometry) -> WarpAttention:
    """Compile the kernel that a geometry is for."""
    return MADE[module(geometry)](runtime, geometry)
