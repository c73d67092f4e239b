"""Limits that several engines have: what an adapter cannot say in its engine's words it does not open."""

from __future__ import annotations

from collections.abc import Collection

from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES, Config


def one_width(config: Config, multiple: int = 1) -> int:
    """Give the width of keys and values. Raises Unsupported where they are of two, or of no such multiple."""
    if config.k_dim != config.v_dim or config.k_dim % multiple:
        raise Unsupported(f"keys of width {config.k_dim} and values of width {config.v_dim}")
    return config.k_dim


def one_of(config: Config, dtypes: Collection[str]) -> str:
    """Give the dtype. Raises Unsupported for one that exists and is not among these."""
    if config.dtype in DTYPES and config.dtype not in dtypes:
        raise Unsupported(f"no rows of {config.dtype}")
    return config.dtype
