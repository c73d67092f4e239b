"""The tables of RoPE: cosines and sines of positions, under a scaling or none."""

from __future__ import annotations

import numpy as np

from kvref.arithmetic import rope_scaling
from kvref.arithmetic.rope_angles import cosine_and_sine
from kvspec.geometry import Array
from kvspec.rope.scaling import LongRoPE, Scaling


def table(positions: Array, dims: int, base: int, scaling: Scaling | None = None) -> tuple[Array, Array]:
    """Cosines and sines `[n, dims / 2]` in f32 for positions `[n]`."""
    far = [isinstance(scaling, LongRoPE) and int(p) >= scaling.original for p in positions]
    turning = {f: [rope_scaling.scaled(i, dims, base, scaling, f) for i in range(dims // 2)] for f in set(far)}
    factor = rope_scaling.factor(scaling)
    lines = [[cosine_and_sine(int(p), each, factor) for each in turning[far[i]]] for i, p in enumerate(positions)]
    both = np.array(lines, np.float32).reshape(len(positions), dims // 2, 2)
    return both[..., 0], both[..., 1]
