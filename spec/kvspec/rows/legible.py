"""Rows that spell which row they are, in their own elements; and what is read of them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from kvspec.forms import Form
from kvspec.geometry import DTYPES, Array, Config, forms
from kvspec.rows import form_rows
from kvspec.rows.serials import BASE, ILLEGIBLE, POISONED, ZEROED, largest


def who(kind: str, heads: Array, sequences: Array) -> Array:
    """Give the digit for keys or values, head and sequence, both modulo 8."""
    return np.asarray((kind == "v") + 2 * (heads % 8) + 16 * (sequences % 8))


def spell(kind: str, heads: Array, sequences: Array, serial: Array, dim: int) -> Array:
    """Give the numbers of the rows in f32, the head dimension last; arguments broadcast."""
    numbers = (_digits(who(kind, heads, sequences), serial, dim) + 1).astype(np.float32)
    ranges = _ranges(kind, heads, sequences, dim)
    return numbers if ranges is None else (numbers + BEYOND[ranges]) * SCALE[ranges]


def _digits(who_: Array, serial: Array, dim: int) -> Array:
    """Give the digits 0..127 of the rows, whatever range they lie in."""
    serial = serial % largest(dim)
    low, mid, high = serial % BASE, serial // BASE % BASE, serial // BASE**2
    check = (3 * who_ + 5 * low + 7 * mid + 11 * high) % BASE
    if dim == 1:
        cells = [(low + 37) % BASE]
    elif dim == 2:
        cells = [low, (who_ + 5 * low) % BASE]
    else:
        cells = [check, low, who_, mid, high][:dim]
    return _along(cells, dim)


def _along(cells: list[Array], dim: int) -> Array:
    code = np.stack(np.broadcast_arrays(*cells), -1)
    return np.tile(code, -(-dim // len(cells)))[..., :dim]


RANGES = 16
"""Ranges that a digit may lie in: 1..128, 129..256, 258..512 by twos and so on, each also negated."""

BEYOND = np.array([BASE * (r > 1) for r in range(RANGES)], np.float32)
"""What is added to a digit first, in each range."""

SCALE = np.array([(-1) ** r * 2 ** max(0, r // 2 - 1) for r in range(RANGES)], np.float32)
"""What it is multiplied by then. The largest number is 2^14, and no number has more than 8 binary digits."""


def _ranges(kind: str, heads: Array, sequences: Array, dim: int) -> Array | None:
    """Give the range of each element; None where all lie in the first. A single element tells by its range keys,
    which are negative, from values, and heads."""
    if dim == 1:
        return np.asarray(who("v" if kind == "k" else "k", heads, sequences) % RANGES)[..., None]
    if heads.max(initial=0) < 8 and sequences.max(initial=0) < 8:
        return None
    places = heads // 8, sequences // 8
    return _along([places[cell % 2] // RANGES ** (cell // 2) % RANGES for cell in range(min(dim, 5))], dim)


def owners_along(batch: int, heads: int, first: int = 0) -> tuple[Array, Array]:
    """Give the numbers of heads, from a first one on, and of sequences, along their axes."""
    return np.arange(first, first + heads)[None, :, None], np.arange(batch)[:, None, None]


LARGEST_TABLE = 1 << 20
"""Most elements of rows kept for reuse."""


@lru_cache(maxsize=256)
def _table(kind: str, batch: int, heads: int, dim: int, dtype: str, size: int) -> Array:
    table = spelled(kind, batch, heads, np.arange(size), dim, dtype)
    table.flags.writeable = False
    return table


def spelled(kind: str, batch: int, heads: int, serials: Array, dim: int, dtype: str) -> Array:
    """Give rows `[batch, heads, n, dim]` of these serials."""
    return spell(kind, *owners_along(batch, heads), serials[None, None, :], dim).astype(DTYPES[dtype])


def axes_of(config: Config, kind: str, n: int) -> tuple[int, ...]:
    """Give batch, heads, rows, dim; none below 0, because a trace may name a config that no cache opens."""
    return tuple(max(0, size) for size in config.shape(kind, n))


def legible(config: Config, kind: str, first: int, n: int) -> Array:
    """Rows `[batch, kv_heads, n, dim]` with serials first..first+n-1; `kind` is "k" or "v"."""
    batch, heads, _, dim = config.shape(kind, n)
    if min(batch, heads, n, dim) <= 0:
        return np.empty(axes_of(config, kind, n), DTYPES[config.dtype])
    if (form := form_of(config, kind)) is not None:
        owners = int(kind == "v"), *owners_along(batch, heads)
        rows = form_rows.spell(form, owners, np.arange(first, first + n)[None, None], dim)
        return rows.astype(DTYPES[config.dtype])
    size = max(64, 1 << (first + n - 1).bit_length())
    if batch * heads * dim * size > LARGEST_TABLE:
        return spelled(kind, batch, heads, np.arange(first, first + n), dim, config.dtype)
    return _table(kind, batch, heads, dim, config.dtype, size)[:, :, first : first + n].copy()


FEW_BYTES = 1 << 12
"""Most bytes of rows whose serials are kept: traces begin alike, so the same few rows are read again and again."""


def read(array: Array, kind: str, first: int = 0) -> Array:
    """Read the serials of legible rows `[B, H, n, dim]`, whose heads are those from `first` on, as whole numbers
    `[B, H, n]`; not to be written on."""
    if array.nbytes > FEW_BYTES:
        return _read(array, kind, first)
    return _read_again(array.tobytes(), array.dtype, array.shape, kind, first)


@lru_cache(maxsize=4096)
def _read_again(raw: bytes, dtype: np.dtype[Any], shape: tuple[int, ...], kind: str, first: int) -> Array:
    serials = _read(np.frombuffer(raw, dtype).reshape(shape), kind, first)
    serials.flags.writeable = False
    return serials


def _read(array: Array, kind: str, first: int) -> Array:
    batch, heads, n, dim = array.shape
    if not array.size:
        return np.full((batch, heads, n), ILLEGIBLE)
    owners = owners_along(batch, heads, first)
    ranges = _ranges(kind, *owners, dim)
    with np.errstate(invalid="ignore"):
        values = array.astype(np.float32)
        plain = values if ranges is None else values / SCALE[ranges] - BEYOND[ranges]
        digits = np.where((plain >= 1) & (plain <= BASE), plain, 0).astype(np.int64) - 1
    serial = _serial(digits, dim)
    right = (spell(kind, *owners, serial, dim) == values).all(-1)
    out = np.where(right, serial, ILLEGIBLE)
    out = np.where((values == 0).all(-1), ZEROED, out)
    return np.where(np.isnan(values).all(-1), POISONED, out)


def _serial(digits: Array, dim: int) -> Array:
    if dim == 1:
        return np.asarray((digits[..., 0] - 37) % BASE)
    if dim == 2:
        return np.maximum(digits[..., 0], 0)
    parts = [digits[..., i] for i in (1, 3, 4) if i < dim]
    return np.asarray(np.sum([np.maximum(p, 0) * BASE**i for i, p in enumerate(parts)], axis=0))


Place = tuple[str, int, int]
"""Where a row is handed in: `k` or `v`, head, sequence."""


class Name(NamedTuple):
    """Whose a row is, and which."""

    kind: str
    """`k` or `v`."""
    head: int
    sequence: int
    serial: int


def name(row: Array) -> Name | None:
    """Read the name of a legible row `[dim]`, wherever it lies; None for any other."""
    with np.errstate(invalid="ignore", over="ignore"):
        values = row.astype(np.float32)
        plain = values[:5, None] / SCALE - BEYOND
    inside = (plain >= 1) & (plain <= BASE)
    if not inside.any(1).all():
        return None
    ranges = inside.argmax(1)
    digits = np.take_along_axis(plain, ranges[:, None], 1)[:, 0].astype(np.int64) - 1
    found = _named(digits, ranges, len(row))
    head, sequence, serial = map(np.asarray, found[1:])
    return found if (spell(found.kind, head, sequence, serial, len(row)) == values).all() else None


def _named(digits: Array, ranges: Array, dim: int) -> Name:
    who_ = ranges[0] ^ 1 if dim == 1 else (digits[1] - 5 * digits[0]) % BASE if dim == 2 else digits[2]
    far = [0, 0]
    for cell, each in enumerate(ranges if dim > 1 else ()):
        far[cell % 2] += int(each) * RANGES ** (cell // 2)
    head, sequence = int(who_) // 2 % 8 + 8 * far[0], int(who_) // 16 + 8 * far[1]
    return Name("kv"[int(who_) % 2], head, sequence, int(_serial(digits, dim)))


def form_of(config: Config, kind: str) -> Form | None:
    """Give the form of keys or of values; None for plain rows."""
    both = forms(config)
    form = None if both is None else both["kv".index(kind)]
    return None if form is None or form.plain else form
