"""The refusals that several kinds have: `common.toml` has their words."""

from __future__ import annotations

from collections.abc import Sequence

from kvspec.errors import Refused
from kvspec.geometry import Array, Config, fits, valid
from kvspec.refusals import Text, Texts

__all__ = ["copy_beyond", "copy_short", "fits", "hole", "rows", "valid"]

_TEXTS = Texts("common")


def __getattr__(name: str) -> Text:
    text: Text = getattr(_TEXTS, name)
    return text


def rows(clause: str, config: Config, keys: Array, values: Array) -> Refused:
    """Rows that are not of the cache's geometry, or as many keys as values."""
    n = keys.shape[2] if keys.ndim == 4 else "n"
    wanted = f"{config.dtype} {config.shape('k', 0)[:2]}+(n, {config.k_dim}) and (n, {config.v_dim})"
    found = f"{keys.dtype} {keys.shape} and {values.dtype} {values.shape}"
    return Refused(clause, f"append of {n} rows: expected {wanted}, found {found}")


def copy_short(clause: str, config: Config, rows: int, n: int) -> Refused:
    """A source of fewer rows than are to be copied."""
    row = config.kv_heads * config.k_dim
    needs = f"needs {n} * {row} = {n * row} elements of keys"
    return Refused(clause, f"copy of {n} rows: {needs}, the source has {rows} rows, {rows * row} elements")


def copy_beyond(clause: str, at: int, n: int, capacity: int) -> Refused:
    """More rows than there are slots from a position on."""
    return Refused(clause, f"copy of {n} rows at {at}: {at} + {n} = {at + n} is beyond the capacity of {capacity}")


def hole(clause: str, sequence: int, held: Sequence[int], length: int) -> Refused:
    """A sequence that lacks rows in some layer."""
    layer = next(i for i, n in enumerate(held) if n < length)
    words = f"step: sequence {sequence} is {length} long, but layer {layer} holds {held[layer]} of its rows"
    return Refused(clause, words)
