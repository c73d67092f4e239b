"""Forms of rows: what a cache keeps of a row that it quantises.

A form is written `codes/scale`, for instance `int8/32`, or by the name of a block of ggml: `q8_0`, `q4_0`.

- codes: `int8` and `int4` are symmetric, `int8a` and `int4a` affine (they have a lowest value beside the scale),
  `e4m3` and `e5m2` are numbers of 8 bits;
- scale: a number g is one scale for g elements of a row, 1 is one for the row in a head. `t` is a scale that is
  given for all rows, `h` one for each head, `c` one for each channel, an element of a head; not of affine forms.
  Given scales follow behind colons, `int8/t:0.5`, and heads or channels take them in turn. Without any it is 1.

`form=K,V` has one form for keys and another for values. What is read of a row has the dtype that it was handed in
with. `form=K,latent` keeps no values: the value of a row is the first elements of its key, as they are read.
`form=latent` does the same with keys that are kept as they are.

A row is kept as bytes: its codes, then its scales, group by group, each with its lowest value behind it if it has
one. Two codes of 4 bits share a byte, the first of both in the lower half. In `q4_0` the lower halves have the
first 16 codes of a block, the upper halves the last 16.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


FINFO: Any = ml_dtypes.finfo
"""What is known of a dtype, also of one of 8 bits."""


class Codes(NamedTuple):
    """What the codes of a form are."""

    bits: int
    top: float
    """The largest number of a code."""
    dtype: np.dtype[Any]
    """What one code is while it is not packed."""
    ends: tuple[int, ...]
    """Codes that each group has which spells a row: its scale, and its lowest value, follow from them."""
    scale: np.dtype[Any] = np.dtype(np.float32)
    """The dtype of scales and lowest values."""
    affine: bool = False


CODES: dict[str, Codes] = {
    "int8": Codes(8, 127, np.dtype(np.int8), (127,)),
    "int4": Codes(4, 7, np.dtype(np.int8), (7,)),
    "int8a": Codes(8, 255, np.dtype(np.uint8), (0, 255), affine=True),
    "int4a": Codes(4, 15, np.dtype(np.uint8), (0, 15), affine=True),
    "e4m3": Codes(8, 448, np.dtype(ml_dtypes.float8_e4m3fn), (448,)),
    "e5m2": Codes(8, 57344, np.dtype(ml_dtypes.float8_e5m2), (57344,)),
    "q8_0": Codes(8, 127, np.dtype(np.int8), (127,), np.dtype(np.float16)),
    "q4_0": Codes(4, 8, np.dtype(np.int8), (-8,), np.dtype(np.float16)),
}
"""All codes, by the name that a form begins with."""

PLAIN: dict[str, Codes] = {
    "f32": Codes(32, math.inf, np.dtype(np.float32), ()),
    "f16": Codes(16, math.inf, np.dtype(np.float16), ()),
    "bf16": Codes(16, math.inf, np.dtype(ml_dtypes.bfloat16), ()),
}
"""Keys that are kept as they are beside latent values, by their dtype: each code is an element, and there are no
scales."""

LATENT = "latent"
"""The form of values that are the first elements of their keys."""

FLOATS = ("e4m3", "e5m2")
"""Codes that are numbers of 8 bits: each has a step of its own."""

GIVEN = ("int8", "int4", *FLOATS)
"""Codes whose scales can be given: those in which zero is a code, and that are no blocks."""

BLOCK = 32
"""Elements of a block of ggml."""

LARGEST_GROUP = 1 << 16
"""Most elements that a form may name as a group."""

_SCALES = r"(:-?(inf|nan|[0-9]{1,9}(\.[0-9]{1,12})?)){0,64}"
_ONE = rf"(q8_0|q4_0|(int[48]a?|e4m3|e5m2)/(t|h|c|[0-9]{{1,5}}){_SCALES})"
PATTERN = f"^({_ONE}(,({_ONE}|{LATENT}))?|{LATENT})$"
"""What the text of a form, or of both, is like; `parsed` says what is refused besides. The chapter's record has
it too."""


class Form(NamedTuple):
    """A form that was read: see the head of this module."""

    codes: str
    group: int
    """Elements that share a scale; 0 for all of a row in a head."""
    given: tuple[float, ...] = ()
    """Scales that are not taken from rows; `scales` tells which of them is whose."""
    channels: bool = False
    """Whether these are of channels, not of heads."""

    @property
    def of(self) -> Codes:
        """What its codes are."""
        return CODES.get(self.codes) or PLAIN[self.codes]

    @property
    def latent(self) -> bool:
        """Whether these are values that are the first elements of their keys."""
        return self.codes == LATENT

    @property
    def plain(self) -> bool:
        """Whether these are keys that are kept as they are."""
        return self.codes in PLAIN

    @property
    def whole_given(self) -> bool:
        """Whether its codes are whole numbers, and their scales given: then no code is NaN."""
        return bool(self.given) and self.codes not in FLOATS

    def scales(self, heads: int, dim: int) -> Array:
        """Give the given scales `[heads, dim]` of rows of this width, or `[heads, 1]` if a head has one. That of
        head h is number h, and that of its element i number h * dim + i, both modulo their count."""
        number = np.arange(heads * dim).reshape(heads, dim) if self.channels else np.arange(heads)[:, None]
        return np.array(self.given, np.float32)[number % len(self.given)]

    def groups(self, dim: int) -> int:
        """Count the scales of a row of this width: none if they are given, and of plain and latent rows."""
        return 0 if self.given or self.plain or self.latent else dim // (self.group or max(1, dim))

    def code_bytes(self, dim: int) -> int:
        """Count the bytes of the codes of a row."""
        return 0 if self.latent else -(-dim * self.of.bits // 8)

    def row_bytes(self, dim: int) -> int:
        """Count the bytes of a row in one head: codes, scales, lowest values."""
        groups = self.groups(dim)
        return self.code_bytes(dim) + (groups and groups * self.of.scale.itemsize * (1 + self.of.affine))

    def wide(self, dim: int) -> int:
        """Give the next width that it fits."""
        group = max(1, self.group)
        return group * -(-max(1, dim) // group)

    def fits(self, dim: int) -> bool:
        """Tell whether the width is a multiple of the group."""
        return dim >= 1 and (self.group == 0 or dim % self.group == 0)


@lru_cache(maxsize=256)
def parsed(text: str) -> tuple[Form, Form]:
    """Read the forms of keys and of values; of `latent` by itself keys are plain, as if in f32. Raises ValueError
    that says what is wrong, and what may stand there."""
    if not re.fullmatch(PATTERN, text):
        raise ValueError(
            f"form {text!r:.60}: it must be like int8/32, int4a/64, e4m3/t:0.5, q8_0 or latent; {_KNOWN}"
        )
    if text == LATENT:
        return Form("f32", 0), Form(LATENT, 0)
    forms = [_one(part) for part in text.split(",")]
    return forms[0], forms[-1]


_KNOWN = f"codes are {', '.join(CODES)}; scales t, h, c or a number of elements"


def _one(text: str) -> Form:
    if text in ("q8_0", "q4_0", LATENT):
        return Form(text, 0 if text == LATENT else BLOCK)
    codes, _, rest = text.partition("/")
    scale, *numbers = rest.split(":")
    if scale not in ("t", "h", "c"):
        return _grouped(text, codes, int(scale), numbers)
    if codes not in GIVEN:
        raise ValueError(f"form {text!r:.60}: scales can be given only for {', '.join(GIVEN)}")
    given = tuple(map(float, numbers)) or (1.0,)
    if scale == "t" and len(given) > 1:
        raise ValueError(f"form {text!r:.60}: one scale serves all rows (t), but {len(given)} are given")
    return Form(codes, 0, tuple(_right(text, each) for each in given), scale == "c")


def _grouped(text: str, codes: str, group: int, numbers: list[str]) -> Form:
    """A form whose scales are taken from rows."""
    if numbers:
        raise ValueError(f"form {text!r:.60}: its scales are taken from rows, so none can be given")
    if not 1 <= group <= LARGEST_GROUP:
        raise ValueError(f"form {text!r:.60}: a group has 1 to {LARGEST_GROUP} elements, not {group}")
    return Form(codes, 0 if group == 1 else group)


def _right(text: str, scale: float) -> float:
    """A given scale as it is stored, in f32."""
    with np.errstate(over="ignore"):
        stored = float(np.float32(scale))
    if not 0 < stored < math.inf:
        raise ValueError(f"form {text!r:.60}: a given scale must be above 0 and finite in f32, is {scale}")
    return stored


def step(form: Form, rows: Array) -> Array:
    """Bound how far what is read of rows `[B, H, n, dim]` may be off, element by element, in f64.

    Whole numbers are off by half a scale. Where one end of a group is exact (affine, `q4_0`), it is a whole one.
    Numbers of 8 bits: half of what their digits are apart, or half their smallest number. Beyond the largest number
    what is lost. To this come what a scale of 16 bits loses, f32 arithmetic, and the rounding to the dtype of the
    rows. NaN where nothing is bounded.
    """
    with np.errstate(all="ignore"):
        x = rows.astype(np.float64)
        scale = _scales(form, x)
        lost = _lost(form, x, scale)
        info = FINFO(rows.dtype)
        size = np.abs(x) + lost
        made: Array = lost + size * (2.0**-21 + float(info.eps) / 2) + float(info.smallest_subnormal)
        return made


class Owed(NamedTuple):
    """What may be read of rows `[B, H, n, dim]`."""

    rows: Array
    """The rows, in f64."""
    step: Array
    """How far each element may be off; infinite where nothing is said."""
    nan: Array
    """Where NaN is to be read: in all of a group with NaN or infinity. Where scales are given, only for a NaN
    itself, and of whole codes nowhere."""

    def at(self, sequence: int, head: int) -> Owed:
        """Give the rows `[n, dim]` of one head of a sequence."""
        return Owed(*(part[sequence, head] for part in self))

    def allows(self, read: Array) -> Array:
        """Tell of each element whether it may be read as this."""
        with np.errstate(invalid="ignore"):
            near = np.abs(read.astype(np.float64) - self.rows) <= self.step
            nan = np.isnan(read)  # of one that signals it warns
        return np.asarray(near | (nan & self.nan) | (self.step == np.inf))


def owed(form: Form, rows: Array) -> Owed:
    """Say what may be read of rows. Of a group whose scale is too large for its dtype nothing is said."""
    with np.errstate(invalid="ignore"):
        x, bad = rows.astype(np.float64), np.isnan(rows)
    if form.whole_given:
        return Owed(np.where(bad, 0, x), np.where(bad, _any_code(form, x), step(form, rows)), np.zeros_like(bad))
    if form.given:
        return Owed(x, step(form, rows), bad)
    groups = grouped(form, x)
    bad = np.broadcast_to(~np.isfinite(groups).all(-1, keepdims=True), groups.shape).reshape(x.shape)
    with np.errstate(all="ignore"):
        largest = _scales(form, x) * (
            form.of.top if form.of.affine else 1
        )  # the distance of both ends, before the scale
        beyond = largest > float(FINFO(form.of.scale).max)
    return Owed(x, np.where(bad, np.nan, np.where(beyond, np.inf, step(form, rows))), bad)


def _any_code(form: Form, x: Array) -> Array:
    """How far from 0 any number is that whole codes say with their given scales, one more below included."""
    return np.asarray((form.of.top + 1) * _scales(form, x) * (1 + 2.0**-7))


def _scales(form: Form, x: Array) -> Array:
    """The scale of each element before it is rounded."""
    if form.given:
        scales = form.scales(x.shape[1], x.shape[3]).astype(np.float64)
        return np.broadcast_to(scales[None, :, None], x.shape)
    parts = grouped(form, x)
    most = np.abs(parts).max(-1, keepdims=True, initial=0)
    if form.of.affine:
        most = parts.max(-1, keepdims=True, initial=-np.inf) - parts.min(-1, keepdims=True, initial=np.inf)
    return np.broadcast_to(most / form.of.top, parts.shape).reshape(x.shape)


def grouped(form: Form, rows: Array) -> Array:
    """View rows `[B, H, n, dim]` as `[B, H, n, groups, elements]`."""
    dim = rows.shape[-1]
    width = form.group or dim
    return rows.reshape(*rows.shape[:-1], dim // max(1, width), width)


def _lost(form: Form, x: Array, scale: Array) -> Array:
    """What the form itself loses of each element at most."""
    codes = form.of
    if form.codes in FLOATS:
        info = FINFO(codes.dtype)
        half = np.maximum(np.abs(x) * 2.0 ** -(info.nmant + 1), scale * float(info.smallest_subnormal) / 2)
        lost = np.maximum(half, np.abs(x) - codes.top * scale)
        return np.asarray(np.where(scale < 2.0**-126, np.maximum(lost, np.abs(x)), lost))
    part = 1.0 if codes.affine or form.codes == "q4_0" else 0.5
    stored = FINFO(codes.scale)
    short = codes.top * (scale * float(stored.eps) / 2 + float(stored.smallest_subnormal))
    ends = scale * codes.top * 2.0**-21 if codes.affine else 0.0
    lost = part * scale + short + ends
    if form.given:
        lost = np.maximum(lost, np.abs(x) - codes.top * scale)
    return np.asarray(np.where(scale < float(stored.smallest_subnormal), np.maximum(lost, np.abs(x)), lost))
