"""What each of these implementations demands of its arguments, in one line."""

from __future__ import annotations

from typing import Any

from kvspec.geometry import DTYPES


def want(holds: bool, otherwise: str) -> None:
    """Raise ValueError unless it holds."""
    if not holds:
        raise ValueError(otherwise)


def want_sizes(config: Any, *names: str) -> None:
    """Refuse a size below 1, or one that is missing."""
    for name in ("batch", "kv_heads", "k_dim", "v_dim", *names):
        size = getattr(config, name)
        want(size is not None and size >= 1, f"{name} is {size}")
    want(config.dtype in DTYPES, f"dtype {config.dtype}")


def want_rows(config: Any, keys: Any, values: Any, *leading: int) -> None:
    """Refuse keys and values that are not `[*leading, kv_heads, n, dim]` of the config's dtype."""
    for array, dim in ((keys, config.k_dim), (values, config.v_dim)):
        want(array.ndim == len(leading) + 3 and array.dtype == DTYPES[config.dtype], f"{array.dtype} {array.shape}")
        want(array.shape == (*leading, config.kv_heads, keys.shape[-2], dim), f"rows are {array.shape}")
