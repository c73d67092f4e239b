"""The texts of RoPE's refusals; see `kvspec.refusals.common`."""

from __future__ import annotations

from typing import Any

from kvspec.errors import Refused
from kvspec.geometry import DTYPES


def rows(clause: str, rows: Any, positions: Any) -> Refused:
    """Rows without the four axes, of an unknown dtype, or with other than one position each."""
    wanted = f"rows [B, H, n, dim] of {', '.join(DTYPES)} and n positions"
    return Refused(clause, f"rotate: expected {wanted}, found {rows.dtype} {rows.shape} and {positions.shape}")


def dims(clause: str, dims: int, width: int) -> Refused:
    """A number of elements that are no pairs of the row."""
    return Refused(clause, f"rotate: {dims} elements of {width}; their number must be even, from 2 to {width}")


def base(clause: str, base: int) -> Refused:
    """A base of no frequencies."""
    return Refused(clause, f"rotate: a base of {base}; it must be 1 or more")
