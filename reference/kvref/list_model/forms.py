"""Rows in a form in the list model: which forms there are, and what a cache owes to rows that it rounds.

The model knows rows by name. A form changes no name: what is read of a row is that row, within the step of its
form.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from kvref.cite import cite
from kvspec.forms import CODES, FLOATS, GIVEN, LARGEST_GROUP, step
from kvspec.geometry import DTYPES, Array, Config, forms
from kvspec.refusals import forms as refusals


class Written(Protocol):
    """Rows that are appended: how many, their dtype, and the array where it was made."""

    @property
    def n(self) -> int:
        """How many."""

    @property
    def dtype(self) -> str:
        """Their dtype."""

    @property
    def array(self) -> Array | None:
        """The array, where it was made."""


NAMED = ("t", "h", "c")
"""What shares a scale that is given."""


def demand(config: Config) -> None:
    """Refuse a form that rows of these widths cannot have."""
    for text in filter(_codes, _texts(config)):
        group, given = _scale(text)
        if any(not 0 < np.float32(scale) < np.inf for scale in given):
            raise refusals.form("ROW-32", f"form {text}: a given scale must be above 0 and finite in f32")
        named = group in NAMED
        many = len(given) > (1 if group == "t" else 0 if not named else len(given))
        if many or (named and _codes(text) not in GIVEN) or not (named or 1 <= int(group) <= LARGEST_GROUP):
            raise refusals.form("ROW-32", f"form {text}: there is none such")
    for text, dim in zip(_texts(config), (config.k_dim, config.v_dim), strict=False):
        group, _ = _scale(text)
        if dim < 1 or (group.isdigit() and dim % int(group)):
            raise refusals.form("ROW-2", f"form {text}: a width of {dim} is no multiple of its group")
    if latent(config) and config.v_dim > config.k_dim:
        raise refusals.form("ROW-19", f"values of {config.v_dim} are no beginning of keys of {config.k_dim}")


def latent(config: Config) -> bool:
    """Whether values are the first elements of their keys."""
    return "latent" in _texts(config)


def _codes(text: str) -> str:
    """The codes of a form; none of plain keys and latent values."""
    return "" if text == "latent" else text.partition("/")[0]


def _texts(config: Config) -> list[str]:
    """The forms of keys and of values; none of plain rows."""
    each = config.form.split(",") if config.form else []
    return each * (2 // len(each)) if each else []


def _scale(text: str) -> tuple[str, list[float]]:
    """What shares a scale, and the scales that are given."""
    if "/" not in text:
        return "32" if _codes(text) else "1", []
    group, *given = text.partition("/")[2].split(":")
    return group, [float(scale) for scale in given]


def cite_written(config: Config, keys: Written, values: Written) -> None:
    """Cite what an append to a cache in a form owes, and what is special in its rows where these were made."""
    texts = _texts(config)
    if not texts or not keys.n:
        return
    texts = list(filter(_codes, texts))
    cite(*["ROW-3"] * bool(texts), "ROW-5", "ROW-6", *["ROW-7", "ROW-8"] * bool(texts))
    cite(*["ROW-9"] * (len(set(texts)) > 1), *["ROW-20"] * latent(config))
    for text, rows in zip(texts, (keys, values), strict=False):
        named, whole = _scale(text)[0], not text.startswith(FLOATS)
        cite(*["ROW-10"] * (named in NAMED), *["ROW-33"] * (named in NAMED and whole), *["ROW-34"] * (named == "c"))
        if rows.array is not None and rows.dtype in DTYPES:
            cite(*_special(text, rows.array.astype(np.float32)))


def rounding(config: Config, keys: Array, bound: Array) -> Array:
    """How far a form may move keys `[B, H, n, k_dim]` that are within a bound of these; zeros for plain rows."""
    kept = forms(config)
    if kept is None or kept[0].plain:
        return np.zeros(keys.shape)
    with np.errstate(over="ignore"):
        lost = step(kept[0], keys.astype(DTYPES[config.dtype]))
    return np.asarray(lost * (1 + 2.0**-6) + 4 * bound.max(-1, keepdims=True, initial=0))


def _special(text: str, x: Array) -> Iterator[str]:
    """The clauses on what a form holds only in part: NaN, rows of zeros, numbers too large, scales too small."""
    group, given = _scale(text)
    codes = CODES[_codes(text)]
    largest = np.abs(x[np.isfinite(x)]).max(initial=0)
    nowhere = "ROW-12" if group.isdigit() or text.startswith(FLOATS) else "ROW-35"
    yield from [nowhere] * bool(np.isnan(x).any() or (group.isdigit() and np.isinf(x).any()))
    if not group.isdigit():
        yield from ["ROW-13"] * bool(largest > codes.top * min(given, default=1) or np.isinf(x).any())
        return
    size = x.shape[-1] if group == "1" else int(group)
    if x.shape[-1] % size:
        return
    most = np.abs(x).reshape(*x.shape[:-1], -1, size).max(-1)
    yield from ["ROW-11"] * bool((most == 0).any())
    with np.errstate(over="ignore", invalid="ignore"):
        yield from ["ROW-14"] * bool(((most > 0) & ((most / codes.top).astype(codes.scale) == 0)).any())
