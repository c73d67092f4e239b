"""What the list model takes and gives instead of arrays: rows and queries with names and sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kvref.list_model import forms
from kvspec.geometry import Array, Config

U = 2.0**-24
"""Largest relative error of one operation in f32."""

UNKNOWN = -4
"""The serial of an unknown row: one that was changed on its way through a host snapshot."""

ANYTHING = object()
"""What is read where the outcome depends on where rows are stored, which the list model does not know."""


class Rows(NamedTuple):
    """Key rows, or value rows: the array that they stand for has this shape and dtype."""

    serials: list[list[int]]
    """The serials of each layer; one list for a cache that has no layers."""
    shape: tuple[int, ...]
    dtype: str
    fill: str = "legible"
    """What they were made of."""
    array: Array | None = None
    """The array itself, where it was made."""

    @property
    def n(self) -> int:
        """Rows of each layer."""
        return len(self.serials[0])

    def tobytes(self) -> bytes:
        """The list model changes no array, so all that was handed to it is as it was."""
        return b""


class Queries(NamedTuple):
    """Queries: the array that they stand for, and the array itself where it was made."""

    shape: tuple[int, ...]
    dtype: str = "f32"
    array: Array | None = None


class Room(NamedTuple):
    """A given output: the array that it stands for, and whether it can be written."""

    shape: tuple[int, ...]
    dtype: str
    writeable: bool


Out = Room | None
"""An output that the caller gives, or none."""

Added = Mapping[int, Sequence[float]]
"""What a query sees: rows by serial, and what each array of the mask adds to the score of each."""


def geometry(keys: Rows, values: Rows) -> dict[str, Any]:
    """The heads, widths and dtype of rows `[front, heads, n, dim]`, by field of a config; none of other arrays."""
    if not len(keys.shape) == len(values.shape) == 4:
        return {}
    return {"kv_heads": keys.shape[1], "k_dim": keys.shape[3], "v_dim": values.shape[3], "dtype": keys.dtype}


def fit(keys: Rows, values: Rows, config: Config, *front: int) -> bool:
    """Whether rows that are appended are `[*front, dim]` in the geometry of a cache."""
    right = fitting(keys, values, config, *front)
    if right:
        forms.cite_written(config, keys, values)
    return right


def fitting(keys: Rows, values: Rows, config: Config, *front: int) -> bool:
    """Whether rows are `[*front, dim]` in the geometry of a cache."""
    shapes = (*front, config.k_dim), (*front, config.v_dim)
    return (keys.shape, values.shape) == shapes and keys.dtype == values.dtype == config.dtype
