"""RoPE on a device: one launch turns rows, by themselves or before an attend."""

from __future__ import annotations

from dataclasses import replace
from math import inf, prod
from typing import Any

import numpy as np

from kvgpu.caches.attention import Ready
from kvgpu.caches.queries import FLOAT
from kvgpu.memory.buffers import Workspace
from kvgpu.memory.device_arrays import DeviceRows
from kvgpu.memory.layout import Geometry
from kvgpu.memory.rope_scaling import sensible
from kvgpu.memory.rope_tables import axes
from kvgpu.runtime import Work
from kvspec.contract import Rope
from kvspec.geometry import DTYPES, Array, Config, still
from kvspec.refusals import rope as refusals
from kvspec.rope.scaling import numbers


def rotate(space: Workspace, rows: Any, positions: Array, rope: Rope) -> Any:
    """Turn rows `[B, H, n, dim]`, each by its position, `[n]`, or by its three, `[3, n]`, with sections. Gives new
    rows, on the device if the rows are there."""
    if 0 in rows.shape:
        return replace(rows) if isinstance(rows, DeviceRows) else rows.copy()
    shape, each = tuple(rows.shape), () if rope.sections is None else (3,)
    if len(shape) != 4 or rows.dtype not in DTYPES.values() or positions.shape != (*each, shape[2]):
        raise refusals.rows("ROPE-11", rows, positions)
    dims = demand(rope, shape[3])
    if isinstance(rows, DeviceRows):
        target = replace(rows, block=space.runtime.allocate(_nbytes(rows)), at=0)
        _turn(space, positions, rope, dims, (rows, target))
        return target
    target = _scratch(space, "turned keys", rows)
    _turn(space, positions, rope, dims, (_uploaded(space, rows), target))
    found = space.runtime.download(target.block, 0, _nbytes(rows))
    return found.view(rows.dtype).reshape(shape)


def demand_attend(rope: Rope | None, config: Config) -> int:
    """How many elements an attend turns, of those that are no latent value. Refuses as `demand` does."""
    return demand(rope, config.k_dim - still(config))


def demand(rope: Rope | None, width: int) -> int:
    """How many elements of a row of this width are turned. Refuses an odd number, fewer than 2, more than the
    row has, a base below 1, a senseless scaling, and sections of other pairs."""
    if rope is None:
        return 0
    dims = rope.dims if rope.dims is not None else width
    if not 2 <= dims <= width or dims & 1:
        raise refusals.dims("ROPE-12", dims, width)
    if rope.base <= 0:
        raise refusals.base("ROPE-13", rope.base)
    told = (1.0,) if rope.scaling is None else numbers(rope.scaling)
    proper = told[0] >= 1 and all(0 < x < inf for x in told)
    if not proper or not sensible(rope.scaling, dims, rope.base):
        raise refusals.scaling("ROPE-38", rope.scaling, dims, rope.base)
    if rope.sections and np.bincount(axes(rope.sections, dims // 2), minlength=3).tolist() != [*rope.sections[:3]]:
        raise refusals.sections("ROPE-45", rope.sections, dims)
    return dims


def at_positions(
    space: Workspace, config: Config, rope: Rope | None, ready: Ready, keys: Any, values: Any, first: int
) -> tuple[Ready, Any, Any]:
    """Turn the queries and new keys of an attend, the first at position `first`, if it asks for RoPE; keys and
    values are then on the device. `demand` has checked the rope, and the cache everything else."""
    if rope is None:
        return ready, keys, values
    place = space.staged(Geometry.of(config.changed(form=None)), keys, values)
    keys, values = (
        DeviceRows(space.runtime, block, tuple(a.shape), a.dtype, at)
        for a, block, at in ((keys, place.keys, place.keys_at), (values, place.values, place.values_at))
    )
    to = _scratch(space, "turned keys", keys), _scratch(space, "turned queries", ready.queries)
    positions = np.arange(first, first + keys.shape[-2], dtype=np.int64)
    dims, beginning = demand_attend(rope, config), still(config)
    _turn(space, positions, rope, dims, (keys, to[0]), (ready.queries, to[1]), beginning=beginning)
    return replace(ready, queries=to[1]), to[0], values


def _nbytes(rows: Any) -> int:
    return int(prod(rows.shape) * rows.dtype.itemsize)


def _scratch(space: Workspace, name: str, like: Any) -> DeviceRows:
    """Scratch space for rows like these."""
    return DeviceRows(space.runtime, space.scratch(name, _nbytes(like)), tuple(like.shape), like.dtype)


def _uploaded(space: Workspace, rows: Array) -> DeviceRows:
    there = _scratch(space, "stage", rows)
    space.runtime.upload(np.ascontiguousarray(rows), there.block)
    return there


def _turn(
    space: Workspace,
    positions: Array,
    rope: Rope,
    dims: int,
    *turned: tuple[DeviceRows, DeviceRows],
    beginning: int = 0,
) -> None:
    """Turn keys, then queries (f32) if there are any, by launches. Each comes with the place of the turned rows.
    The first `beginning` elements stay."""
    table = space.tables.table(np.asarray(positions, np.int64), dims, rope)
    (keys, to), (queries, to_queries) = turned[0], turned[-1]
    width, rows, size = keys.shape[-1], keys.shape[-2], keys.dtype.itemsize
    heads, others, parts = prod(keys.shape[:-2]), prod(queries.shape[:-2]), len(turned)
    step, apart = (2, 1) if rope.pairing == "norm" else (1, dims // 2)
    blocks = keys.block, to.block, queries.block, to_queries.block, table
    ends = keys.at // size, queries.at // FLOAT.itemsize
    sizes = parts, heads, others, rows, width, dims, step, apart, beginning, *ends
    name = next(name for name, dtype in DTYPES.items() if dtype == keys.dtype)
    space.runtime.launch(f"rope_{name}", Work(width - dims // 2, rows, max(heads, others), parts), *blocks, *sizes)
    space.runtime.meter.device_to_device += sum(_nbytes(to) for _, to in turned)
