"""What a layer keeps of its tokens where it keeps no rows: a sum of products, in which a token counts half of the
next."""

from __future__ import annotations

import numpy as np

from kvspec.geometry import Array, Config

HALF = np.float32(0.5)
"""What is left of a state after the next token."""


def zeros(config: Config) -> Array:
    """The state of no tokens, `[kv_heads, k_dim, v_dim]` in f32."""
    return np.zeros((config.kv_heads, config.k_dim, config.v_dim), np.float32)


def folded(state: Array, keys: Array, values: Array, decay: Array | np.float32 = HALF) -> Array:
    """The state after n more tokens, in memory of its own.

    `keys` `[kv_heads, n, k_dim]`, `values` `[kv_heads, n, v_dim]`, of any dtype: the arithmetic is that of f32.
    `decay`: one number, or one for each token and head, `[kv_heads, n]`, or each element of a key too.
    """
    k, v = np.asarray(keys, np.float32), np.asarray(values, np.float32)
    left = np.asarray(decay, np.float32)
    left = np.broadcast_to(left.reshape(*left.shape, *[1] * (3 - left.ndim)), k.shape)
    with np.errstate(all="ignore"):
        for t in range(k.shape[1]):
            state = left[:, t, :, None] * state + k[:, t, :, None] * v[:, t, None, :]
    return np.array(state)
