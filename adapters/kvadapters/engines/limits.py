"""Limits that several engines have. An adapter does not open a config that its engine cannot express."""

from __future__ import annotations

from collections.abc import Collection

from kvspec.errors import Unsupported
from kvspec.geometry import DTYPES, Array, Config, Pair, fits


def one_width(config: Config, multiple: int = 1) -> int:
    """Give the width of keys and values. Raises Unsupported if the two differ, or are no such multiple."""
    if config.k_dim != config.v_dim or config.k_dim % multiple:
        raise Unsupported(f"keys of width {config.k_dim} and values of width {config.v_dim}")
    return config.k_dim


def check_batch(config: Config, most: int) -> None:
    """Raise Unsupported for a batch of more than `most` sequences."""
    if config.batch > most:
        raise Unsupported(f"a batch of {config.batch} sequences")


def check_heads(config: Config, most: int) -> None:
    """Raise Unsupported for more than `most` heads of keys and values."""
    if config.kv_heads > most:
        raise Unsupported(f"{config.kv_heads} heads")


def one_of(config: Config, dtypes: Collection[str]) -> str:
    """Give the dtype. Raises Unsupported for another dtype of the spec."""
    if config.dtype in DTYPES and config.dtype not in dtypes:
        raise Unsupported(f"no rows of {config.dtype}")
    return config.dtype


def check_rows(config: Config, keys: Array, values: Array) -> None:
    """Raise ValueError for rows that no projection of this model makes."""
    if not fits(config, Pair(keys, values)):
        raise ValueError(f"rows {keys.shape} and {values.shape} of {keys.dtype}")
