"""Whether cosines and sines that another library computed in f32 lie within the bound of the chapter ROPE."""

from __future__ import annotations

import numpy as np

from kvref.abilities import rope
from kvref.list_model import rope as listed
from kvspec.geometry import Array
from support.samples.released_ropes import Call, Released

AS_TRANSFORMERS = listed.Declared(angles="f32", long="call")
"""What an adapter of it would declare."""


def row(dims: int, n: int) -> Array:
    """Rows whose pairs are (1, 0): what they are turned to are cosines, and then sines."""
    return np.tile(np.repeat([1, 0], dims // 2).astype(np.float32), (1, 1, n, 1))


def beyond(released: Released, call: Call) -> str:
    """Say what is beyond the bound, by the list model; and by the reference, where both choose the same list."""
    rows, dims = row(released.dims, call.positions.shape[-1]), released.dims
    found = np.concatenate([call.cosines, call.sines], -1).astype(np.float64)
    middle, bound, _ = listed.turned(listed.exactly(rows, "f32"), call.positions, released.rope, AS_TRANSFORMERS)
    off = np.abs(found - middle[0, 0])
    if (off > bound[0, 0]).any():
        return f"{off.max():.3g} off, at {call.positions.tolist()}"
    original = getattr(released.rope.scaling, "original", 0)
    alike = np.atleast_2d((call.positions >= original) == (call.positions.max() >= original)).all(0)
    here = rope.rotate(rows, call.positions, released.rope)[0, 0].reshape(-1, dims).astype(np.float64)
    off = np.abs(found - here)[alike]
    return f"{off.max():.3g} off the reference" if (off > bound[0, 0][alike]).any() else ""
