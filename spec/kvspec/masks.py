"""Logical masks: what a caller asks for, in position order. A mask is a list of parts that are intersected.

In JSON a part is `"causal"`, `{"window": w}` or `{"array": nested lists, "dtype": "bool" | "f32"}`. The last axis
of an array is the key columns; it has a `"shape"` if it has no elements. In the notation a part is `causal`,
`window=3`, `1011/0111` (boolean, a string a query), `[0 -1 / -inf 0]` (f32 scores) or `bool[1,1,0,4]` (no
elements). Commas separate heads, and + separates batch rows. No parts at all is the mask that hides nothing:
`none`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kvspec.errors import BadInput
from kvspec.geometry import Array

MASK_DTYPES = {"bool": np.dtype(bool), "f32": np.dtype(np.float32)}
"""The dtypes a mask may have."""

LARGEST_WINDOW = 1 << 16
"""Bound on the magnitude of a window in a trace; one below 1 is for caches to refuse."""

LARGEST_MASK = 1 << 20
"""Elements an explicit mask in a trace may have."""


@dataclass(frozen=True)
class Causal:
    """Hides the future: query i of L sees columns up to `K - L + i`."""


@dataclass(frozen=True)
class Window:
    """Hides old rows: the query at p sees no position below `p - size + 1`. Hides nothing else. Caches refuse a
    `size` below 1."""

    size: int


@dataclass(frozen=True, eq=False)
class Explicit:
    """An array `[1 or B, 1 or heads, L, 1 or K]`. It is boolean, where True means may attend, or f32, which is
    added to the scores."""

    array: Array


Part = Causal | Window | Explicit
Logical = tuple[Part, ...]
"""A logical mask: the intersection of its parts."""

CAUSAL: Logical = (Causal(),)


def from_json(parts: Any, where: str = "mask") -> Logical:
    """Read a logical mask from a trace's JSON. Raises BadInput."""
    if not isinstance(parts, list) or len(parts) > 8:
        raise BadInput(f"{where}: a mask is a list of at most 8 parts, not {parts!r:.60}")
    return tuple(_part(p, where) for p in parts)


def _part(part: Any, where: str) -> Part:
    if part == "causal":
        return Causal()
    if isinstance(part, dict) and set(part) == {"window"}:
        size = part["window"]
        if type(size) is int and abs(size) <= LARGEST_WINDOW:
            return Window(size)
    fields = set(part) - {"shape"} if isinstance(part, dict) else set()
    if fields == {"array", "dtype"} and part["dtype"] in ("bool", "f32"):
        array = _array(part["array"], part["dtype"], where)
        return Explicit(_empty(array, part["shape"], where) if "shape" in part else array)
    windows = f"{-LARGEST_WINDOW}..{LARGEST_WINDOW}"
    raise BadInput(
        f'{where}: a part is "causal", {{"window": {windows}}} or {{"array", "dtype"}}, not {part!r:.60}'
    )


LEAVES: dict[str, set[type]] = {"bool": {bool}, "f32": {int, float, str}}
"""What stands in the lists of an array, by its dtype."""


def _array(nested: Any, dtype: str, where: str) -> Array:
    try:
        leaves = np.array(nested, dtype=object)
        if leaves.ndim > 6 or leaves.size > LARGEST_MASK:
            raise BadInput(f"{where}: an array of {leaves.ndim} axes and {leaves.size} elements is too large")
        found = set(map(type, leaves.flat))
        if not found <= LEAVES[dtype] or (str in found and {x for x in leaves.flat if type(x) is str} != {"-inf"}):
            raise BadInput(
                f"{where}: a {dtype} array holds {'true, false' if dtype == 'bool' else 'numbers, -inf'}"
            )
        with np.errstate(over="ignore"):
            array = leaves.astype(MASK_DTYPES[dtype])
        if dtype == "f32" and not (np.isfinite(array) | (array == -np.inf)).all():
            raise BadInput(f"{where}: a score is a finite f32 number, or -inf")
        return array
    except (ValueError, TypeError, OverflowError) as e:
        raise BadInput(f"{where}: the array is ragged or holds something else ({e})") from None


def _empty(array: Array, shape: Any, where: str) -> Array:
    """Read an array without elements, because nested lists cannot show its shape."""
    sizes = isinstance(shape, list) and len(shape) <= 6 and all(type(n) is int and 0 <= n <= 1 << 16 for n in shape)
    if not sizes or 0 not in shape or array.size:
        raise BadInput(
            f"{where}: a shape is given for an array without elements, and holds a 0; found {shape!r:.60}"
        )
    return array.reshape(shape)


def to_json(mask: Logical) -> list[Any]:
    """Write the mask as JSON for a trace."""
    return [_part_json(p) for p in mask]


def _part_json(part: Part) -> Any:
    if isinstance(part, Causal):
        return "causal"
    if isinstance(part, Window):
        return {"window": part.size}
    leaves = part.array.astype(object)
    if part.array.dtype != bool:
        leaves = np.where(np.isneginf(part.array), "-inf", leaves)
    dtype = "bool" if part.array.dtype == bool else "f32"
    shape = {} if part.array.size else {"shape": list(part.array.shape)}
    return {"array": leaves.tolist() if part.array.size else [], "dtype": dtype, **shape}


def overflowing(logical: Logical) -> bool:
    """Tell whether what arrays of scores add up to for a key may overflow, minus infinity left aside."""
    arrays = [p.array for p in logical if isinstance(p, Explicit) and p.array.dtype != bool and p.array.size]
    largest = sum(float(np.abs(a, where=np.isfinite(a), out=np.zeros_like(a)).max()) for a in arrays)
    return largest > float(np.finfo(np.float32).max) / 4
