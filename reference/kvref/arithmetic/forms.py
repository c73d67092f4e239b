"""Rows in a form, to the bit: codes and scales as bytes, and the rows that are read of them.

All arithmetic is that of f32, one rounding an operation. Scales are taken from a group of elements: the largest
magnitude over the largest code, of affine forms the distance of both ends over it. A quotient is rounded to
nearest even and clipped to the codes there are. The blocks of ggml are those of its reference. In `q8_0` elements
are multiplied by the reciprocal of the scale, and halves round away from zero. In `q4_0` the element of the
largest magnitude becomes -8, whatever its sign.

A group with NaN or infinity, or whose scale its dtype cannot hold, has NaN for its scale: all of it is read as NaN.
Given scales leave a NaN where it is; of whole codes it becomes code 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kvspec.forms import FLOATS, Form, grouped
from kvspec.geometry import Array


class Parts(NamedTuple):
    """Codes `[B, H, n, dim]`; scales and lowest values `[B, H, n, groups, 1]`, numbers of their dtype in f32."""

    codes: Array
    scale: Array
    low: Array


def encoded(form: Form, rows: Array) -> Array:
    """Make bytes `[B, H, n, row bytes]` of rows `[B, H, n, dim]` in f32, f16 or bf16; none of latent values. Plain
    keys are cast to their dtype."""
    if form.latent:
        return np.empty((*rows.shape[:-1], 0), np.uint8)
    if form.plain:
        return np.asarray(rows).astype(form.of.dtype, "C", copy=False).view(np.uint8)
    with np.errstate(all="ignore"):
        return together(form, encode(form, np.asarray(rows).astype(np.float32)))


def together(form: Form, made: Parts) -> Array:
    """Put codes, scales and lowest values together as bytes."""
    codes = packed(form, made.codes)
    if form.given:
        return codes
    stored = np.concatenate([made.scale, made.low][: 1 + form.of.affine], -1).astype(form.of.scale)
    size = form.row_bytes(made.codes.shape[-1]) - codes.shape[-1]
    return np.concatenate([codes, stored.view(np.uint8).reshape(*codes.shape[:3], size)], -1)


def decoded(form: Form, kept: Array, dim: int, dtype: np.dtype[Any]) -> Array:
    """Read rows `[B, H, n, dim]` of a dtype from bytes."""
    if form.plain:
        return np.ascontiguousarray(np.asarray(kept)).view(dtype)
    return read(form, parts(form, np.asarray(kept), dim), dtype)


def read(form: Form, made: Parts, dtype: np.dtype[Any]) -> Array:
    """Read rows of a dtype from codes, scales and lowest values."""
    with np.errstate(all="ignore"):
        numbers = grouped(form, made.codes.astype(np.float32)) * made.scale
        if form.of.affine:
            numbers = numbers + made.low
        return np.asarray(numbers.reshape(made.codes.shape).astype(dtype))


def parts(form: Form, kept: Array, dim: int) -> Parts:
    """Take bytes apart into codes, scales and lowest values."""
    at, front = form.code_bytes(dim), kept.shape[:3]
    codes, none = unpacked(form, kept[..., :at], dim), np.zeros((1,) * 5, np.float32)
    if form.given:
        return Parts(codes, _given(form, front[1], dim), none)
    tail = np.ascontiguousarray(kept[..., at:]).view(form.of.scale).astype(np.float32)
    tail = tail.reshape(*front, form.groups(dim), 1 + form.of.affine)
    return Parts(codes, tail[..., :1], tail[..., 1:] if form.of.affine else none)


def _given(form: Form, heads: int, dim: int) -> Array:
    """Given scales, as they go with groups `[B, heads, n, 1, dim]`."""
    return form.scales(heads, dim)[None, :, None, None]


def encode(form: Form, x: Array) -> Parts:
    """Codes and scales of rows in f32."""
    if form.given:
        scale = _given(form, x.shape[1], x.shape[3])
        return Parts(_coded(form, grouped(form, x) / scale).reshape(x.shape), scale, np.zeros((), np.float32))
    groups = grouped(form, x)
    low = groups.min(-1, keepdims=True) if form.of.affine else np.zeros((1,) * 5, np.float32)
    unrounded = _scale(form, groups, low)
    scale = unrounded.astype(form.of.scale).astype(np.float32)
    scale = np.where(np.isfinite(groups).all(-1, keepdims=True) & np.isfinite(scale), scale, np.float32(np.nan))
    codes = _coded(form, _quotients(form, groups - low, scale, unrounded))
    return Parts(codes.reshape(x.shape), scale, np.broadcast_to(low, scale.shape))


def _scale(form: Form, groups: Array, low: Array) -> Array:
    """The scale of each group in f32, before it is stored."""
    top = np.float32(form.of.top)
    if form.of.affine:
        return np.asarray((groups.max(-1, keepdims=True) - low) / top)
    largest = np.abs(groups)
    if form.codes == "q4_0":
        return np.asarray(np.take_along_axis(groups, largest.argmax(-1)[..., None], -1) / -top)
    return np.asarray(largest.max(-1, keepdims=True) / top)


def _quotients(form: Form, above: Array, scale: Array, unrounded: Array) -> Array:
    """What becomes codes; zeros where the scale is 0 or NaN."""
    divisor = unrounded if form.codes.startswith("q") else scale
    usable = (divisor != 0) & ~np.isnan(scale)
    if form.codes.startswith("q"):
        factor = np.divide(np.float32(1), divisor, where=usable, out=np.zeros_like(divisor))
        return np.asarray(above * factor)
    return np.divide(above, divisor, where=np.broadcast_to(usable, above.shape), out=np.zeros_like(above))


def _coded(form: Form, quotients: Array) -> Array:
    """Codes of quotients, each rounded once and clipped."""
    of, top = form.of, np.float32(form.of.top)
    quotients = np.where(np.isnan(quotients), quotients if form.codes in FLOATS else 0, quotients).astype(
        np.float32
    )
    if form.codes in FLOATS:
        return np.asarray(np.clip(quotients, -top, top).astype(of.dtype))
    if form.codes == "q4_0":
        return np.asarray(np.minimum(np.float32(15), np.trunc(quotients + np.float32(8.5))).astype(of.dtype) - 8)
    if form.codes == "q8_0":
        whole = np.trunc(np.abs(quotients))
        away = whole + (np.abs(quotients) - whole >= np.float32(0.5))
        return np.asarray(np.copysign(away, quotients).astype(of.dtype))
    return np.asarray(np.clip(np.rint(quotients), 0 if of.affine else -top, top).astype(of.dtype))


HALVES = slice(0, 16), slice(16, 32)
"""The elements of a block of `q4_0` whose codes lie in lower halves of bytes, and those in upper ones."""


def packed(form: Form, codes: Array) -> Array:
    """Codes `[B, H, n, dim]` as bytes `[B, H, n, code bytes]`."""
    if form.of.bits == 8:
        return np.ascontiguousarray(codes).view(np.uint8)
    if form.codes == "q4_0":
        blocks = grouped(form, codes.astype(np.uint8) + 8)
        low, high = (blocks[..., half].reshape(*codes.shape[:3], codes.shape[-1] // 2) for half in HALVES)
        return np.asarray(low | high << 4, np.uint8)
    halves = codes.astype(np.uint8) & 15
    if codes.shape[-1] % 2:
        halves = np.concatenate([halves, np.zeros_like(halves[..., :1])], -1)
    return np.asarray(halves[..., ::2] | halves[..., 1::2] << 4)


def unpacked(form: Form, kept: Array, dim: int) -> Array:
    """Codes `[B, H, n, dim]` of their bytes."""
    if form.of.bits == 8:
        return np.ascontiguousarray(kept).view(form.of.dtype)
    low, high = kept & 15, kept >> 4
    front = kept.shape[:-1]
    if form.codes == "q4_0":
        halves = [half.reshape(*front, dim // 32, 16) for half in (low, high)]
        return np.concatenate(halves, -1).reshape(*front, dim).astype(np.int8) - np.int8(8)
    codes = np.stack([low, high], -1).reshape(*front, 2 * kept.shape[-1])[..., :dim].astype(np.int8)
    return codes if form.of.affine else np.where(codes > 7, codes - 16, codes).astype(np.int8)
