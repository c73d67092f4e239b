"""The tables of RoPE: cosines and sines of positions, under a scaling or none."""

from __future__ import annotations

import numpy as np

from kvref.arithmetic import rope_scaling
from kvref.arithmetic.rope_angles import cosine_and_sine
from kvspec.geometry import Array
from kvspec.rope.scaling import LongRoPE, Scaling


def table(positions: Array, dims: int, base: int, scaling: Scaling | None = None) -> tuple[Array, Array]:
    """Cosines and sines `[n, dims / 2]` in f32 for positions `[n]`."""
    lines = [_line(int(p), dims, base, scaling) for p in positions]
    both = np.array(lines, np.float32).reshape(len(positions), dims // 2, 2)
    return both[..., 0], both[..., 1]


def _line(position: int, dims: int, base: int, scaling: Scaling | None) -> list[tuple[np.float32, np.float32]]:
    far = isinstance(scaling, LongRoPE) and position >= scaling.original
    frequencies = [rope_scaling.scaled(i, dims, base, scaling, far) for i in range(dims // 2)]
    return [cosine_and_sine(position, f, rope_scaling.factor(scaling)) for f in frequencies]
