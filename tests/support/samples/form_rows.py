"""Rows of two heads to try forms on."""

from __future__ import annotations

import numpy as np

from kvspec.geometry import DTYPES, Array


def rows(dim: int, dtype: str = "f32", seed: int = 0, n: int = 16) -> Array:
    """Rows `[1, 2, n, dim]` of a dtype: normal, one-sided, constant, zeros, tiny, with an outlier, with ties."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((1, 2, n, dim)) * np.exp(random.normal(0, 3, (1, 2, n, 1)))
    x[:, :, 1], x[:, :, 2], x[:, :, 3] = np.abs(x[:, :, 1]), 0.3, 0
    x[:, :, 4], x[0, 0, 5, 5] = x[:, :, 4] * 1e-40, 4000
    x[:, :, 6] = np.arange(dim) % 32 - 15.5  # ties
    x[:, :, 7, 0] = -np.abs(x[:, :, 7]).max() * 2
    return x.astype(np.float32).astype(DTYPES[dtype])
