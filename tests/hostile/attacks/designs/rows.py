"""Rows of designs that keep them one by one, and what designs refuse."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from kvspec.contract import Pair
from kvspec.geometry import DTYPES, SIZES, Array, Config


class Row(NamedTuple):
    """The key and the value of one position: `[..., kv_heads, dim]`."""

    key: Array
    value: Array


def demand(right: bool, what: str = "arguments that no cache takes") -> None:
    """Refuse by an exception of one's own."""
    if not right:
        raise ValueError(what)


def check(config: Config, *needed: str) -> None:
    """Refuse a config that no cache may accept."""
    given = {name: getattr(config, name) for name in SIZES}
    sizes = all(n >= 1 for n in given.values() if n is not None)
    demand(sizes and all(getattr(config, name) is not None for name in needed), "no such cache")


def rows_of(pair: Pair) -> list[Row]:
    """The rows of arrays `[..., n, dim]`, position by position, copied."""
    return [Row(*(np.array(a[..., i, :]) for a in pair)) for i in range(pair[0].shape[-2])]


def arrays_of(rows: Iterable[Row], config: Config, *front: int) -> Pair:
    """The rows side by side, `[..., kv_heads, n, dim]`."""
    rows, dtype = list(rows), DTYPES[config.dtype]
    empty = [np.zeros((*front, config.kv_heads, 0, d), dtype) for d in (config.k_dim, config.v_dim)]
    return Pair(*(np.stack(parts, axis=-2) for parts in zip(*rows, strict=True)) if rows else empty)
