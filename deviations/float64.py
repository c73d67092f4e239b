"""Attention in float64 over a whole history: the result that an engine's attention over its cache should have."""

from __future__ import annotations

import math

import numpy as np


def attention(queries, keys, values, window=None, sinks=0):
    """Attend causally, the newest query at the newest key; all are `[n, dim]` arrays, all rows that are alive.

    A query sees `window` rows, itself included, or all rows up to itself; and the first `sinks` rows beside them.
    """
    n, rows = len(queries), len(keys)
    query, key = np.arange(rows - n, rows)[:, None], np.arange(rows)[None]
    seen = (key <= query) & ((key > query - (window or rows)) | (key < sinks))
    scores = np.where(
        seen, queries.astype(np.float64) @ keys.T.astype(np.float64) / math.sqrt(keys.shape[1]), -np.inf
    )
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ values.astype(np.float64)


def rows(count, dim=8, seed=0):
    """Make distinct rows `[count, dim]` in float32."""
    return np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)


def report(shown, message):
    """Print the result and give the exit status: 0 if the deviation still reproduces, 1 if not."""
    print(f"{'reproduced' if shown else 'not reproduced'}: {message}")
    return 0 if shown else 1
