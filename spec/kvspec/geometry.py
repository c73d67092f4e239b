"""Geometry and dtypes: arrays of rows, their shape, and the configuration that opens a cache."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from msgspec import Struct, structs

Array = np.ndarray[Any, np.dtype[Any]]


class Pair(NamedTuple):
    """Key rows `[B, H, T, k_dim]` and value rows `[B, H, T, v_dim]` of the same T positions."""

    keys: Array
    values: Array


DTYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
}
"""The dtypes rows may have, by their names in traces, on the wire and in reports."""

LAYOUTS = ("token", "head")
"""Layouts of a copy buffer: token-major `[capacity, kv_heads, dim]`, head-major `[kv_heads, capacity, dim]`."""

PADDINGS = ("left", "right")
"""The sides on which the sequences of a ragged cache are padded."""


class Config(Struct, frozen=True):
    """The configuration of a cache: rows are `[batch, kv_heads, T, k_dim]` and `[batch, kv_heads, T, v_dim]`.

    `step` is the number of rows by which storage grows; `window` (ring) the number of rows a query sees, itself
    included; `capacity` and `layout` (copy) the rows of its buffer and how they lie; `layers` (store) how many
    layers it has, `max_len` (store, bounded) how many rows each can hold; `page_size` and `pages` (page) the
    rows of a page and how many the pool has, `debug` whether freed ones are poisoned; `bounds` (bucket) the
    rows that graphs are there for, as `4-8-16`; `padding` (ragged) the side on which sequences are padded;
    `sinks` (sink) the first rows, which are kept, `beside` 1 where the window does not count them, `shifted` 1
    where positions are those within the cache. Fields of other kinds are None. A Config may hold values that no
    cache accepts; see GROW-11, RING-14.
    """

    batch: int = 1
    kv_heads: int = 2
    k_dim: int = 8
    v_dim: int = 6
    dtype: str = "f16"
    step: int = 256
    window: int | None = None
    capacity: int | None = None
    layout: str | None = None
    layers: int | None = None
    max_len: int | None = None
    page_size: int | None = None
    pages: int | None = None
    debug: int | None = None
    bounds: str | None = None
    padding: str | None = None
    sinks: int | None = None
    beside: int | None = None
    shifted: int | None = None

    def shape(self, kind: str, rows: int) -> tuple[int, int, int, int]:
        """Give the shape of `rows` rows; `kind` is "k" or "v"."""
        return self.batch, self.kv_heads, rows, self.k_dim if kind == "k" else self.v_dim

    @property
    def row_bytes(self) -> int:
        """Count the bytes of one position: its key and value rows over all heads and the whole batch."""
        return self.batch * self.kv_heads * (self.k_dim + self.v_dim) * DTYPES[self.dtype].itemsize

    def to_json(self) -> dict[str, Any]:
        """Give all fields that are set."""
        return {k: v for k, v in structs.asdict(self).items() if v is not None}

    def changed(self, **fields: Any) -> Config:
        """Make a copy with some fields changed."""
        return structs.replace(self, **fields)


SIZES = (
    *("batch", "kv_heads", "k_dim", "v_dim", "step", "window", "capacity", "layers", "max_len"),
    *("page_size", "pages", "debug", "sinks", "beside", "shifted"),
)
"""The fields of a Config that are whole numbers."""

WORDS = {"dtype": tuple(DTYPES), "layout": LAYOUTS, "padding": PADDINGS}
"""The fields of a Config that are words, and the allowed words."""

TEXTS = {"bounds": "^[0-9]{1,5}(-[0-9]{1,5}){0,7}$"}
"""The fields of a Config that are texts, and their patterns."""

FIELDS = (*SIZES, *WORDS, *TEXTS)
"""All fields of a Config."""


def same_geometry(a: Config, b: Config) -> bool:
    """Tell whether rows saved from one cache fit the other: all but the growth step must be equal."""
    return a.changed(step=0) == b.changed(step=0)


@lru_cache(maxsize=1024)
def valid(config: Config) -> bool:
    """Tell whether every given size is 1 or more, and the dtype known."""
    sizes = (getattr(config, name) for name in SIZES)
    return config.dtype in DTYPES and all(n >= 1 for n in sizes if n is not None)


def fits(config: Config, pair: Pair) -> bool:
    """Tell whether rows have the config's geometry, with as many keys as values."""
    n = pair.keys.shape[2] if pair.keys.ndim == 4 else -1
    right = (config.shape("k", n), config.shape("v", n))
    return (pair.keys.shape, pair.values.shape) == right and {a.dtype for a in pair} == {DTYPES[config.dtype]}
