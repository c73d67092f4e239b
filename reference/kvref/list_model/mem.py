"""Planning memory in the list model: how many sequences fit is counted."""

from __future__ import annotations

from bisect import bisect_right

from kvref.cite import cite
from kvref.list_model import forms
from kvspec.errors import Refused
from kvspec.geometry import DTYPES, Config
from kvspec.geometry import forms as forms_of


def fit(kind: str, config: Config, free: int, reserve: int | None, most: int | None) -> tuple[int, bool]:
    """How many sequences fit beside the reserve, at least 1; and whether even one does."""
    if kind != "store":
        raise Refused("MEM-17", "sequences of no fixed size")
    if most is not None and most < 1:
        raise Refused("MEM-16", "no sequences")
    forms.demand(config)
    cite("MEM-12", "MEM-14", "MEM-13" if reserve is None else "MEM-11", *["ROW-31"] * (config.form is not None))
    batches, each = range(1, (32 if most is None else most) + 1), _bytes(config)
    if each == 0:
        cite("MEM-15")
    left = free - (3_500_000_000 if reserve is None else reserve)
    fitting = bisect_right(batches, left, key=lambda m: m * each) if each else len(batches)
    return max(1, fitting), fitting > 0


def _bytes(config: Config) -> int:
    """Bytes of the keys and values of every head, position and layer of one sequence."""
    each = zip(forms_of(config) or (None, None), (config.k_dim, config.v_dim), strict=True)
    row = sum(dim * DTYPES[config.dtype].itemsize if form is None else form.row_bytes(dim) for form, dim in each)
    return row * config.kv_heads * (config.max_len or 0) * (config.layers or 0)
