"""Rows that a form keeps to the bit, so that structure is judged exactly in any form. The codes of a row spell its
serial, and each of its groups has a scale of its own.

A group has the codes that fix its scale first (`Codes.ends`), then digits. The digits of the first elements spell
the serial; the base is the number of codes. All digits are shifted by an amount that differs between heads,
between sequences, and between keys and values. Scales are powers of two. They differ between successive rows,
between neighbouring heads and groups, and between keys and values. So a scale that is left behind, or another's,
shows. Where scales are given, codes alone differ.
"""

from __future__ import annotations

import math

import numpy as np

from kvspec.forms import FLOATS, Array, Form, Owed, owed

SCALES = 7
"""How many scales there are."""

LARGEST = {"int8": -6, "int4": -2, "int8a": -6, "int4a": -2, "e4m3": -7, "e5m2": -14, "q8_0": -6, "q4_0": -2}
"""The exponent of the largest scale, so that no element is above 4; the others are smaller, by a factor of two
each."""


def digits(form: Form) -> Array:
    """Give the codes that spell, in f32; none is zero, and none is larger than those at the ends."""
    if form.codes in FLOATS:
        sizes = 2.0 ** np.arange(-2, 4)
        whole = np.arange(8, 15) if form.codes == "e4m3" else np.arange(4, 7) * 256
        numbers = np.outer(sizes, whole).ravel()
        return np.concatenate([numbers, -numbers]).astype(np.float32)
    if form.of.affine:
        middle = _middle(form)
        return np.setdiff1d(np.arange(1, form.of.top, dtype=np.float32), [middle])
    top = form.of.top - 1
    return np.concatenate([np.arange(1, top + 1), -np.arange(1, top + 1)]).astype(np.float32)


def _middle(form: Form) -> float:
    """The code of zero in an affine form."""
    return (form.of.top + 1) // 2


def ends(form: Form, dim: int) -> int:
    """Count the elements of a row that fix scales."""
    return 0 if form.given else form.groups(dim) * min(len(form.of.ends), form.group or dim)


SERIALS = 1 << 24
"""How many serials need be told apart."""


def most(form: Form, dim: int) -> int:
    """Count the serials that rows of this width can spell in a form."""
    return int(min(len(digits(form)) ** min(dim - ends(form, dim), _needed(form)), SERIALS))


def _needed(form: Form) -> int:
    """Count the digits that spell every serial."""
    return math.ceil(math.log(SERIALS, len(digits(form))))


def spell(form: Form, owners: tuple[int, Array, Array], serials: Array, dim: int) -> Array:
    """Give rows `[B, H, n, dim]` in f32. `owners`: 1 for values and 0 for keys, heads and sequences, as they
    broadcast with the serials."""
    table, value = digits(form), owners[0]
    where = np.broadcast_arrays(*owners[1:], serials)
    head, sequence, serial = (a.astype(np.int64)[..., None] for a in where)
    element = np.arange(dim, dtype=np.int64)
    width = form.group or dim
    first = 0 if form.given else min(len(form.of.ends), width)
    place = element // width * (width - first) + element % width - first
    needed = _needed(form)
    power = np.array([len(table) ** int(p) if 0 <= p < needed else 1 for p in place], np.int64)
    mixed = serial * (place >= needed) * (2 + element)
    shift = 11 * head + 29 * sequence + 53 * value + element * (7 + 2 * (head % 5) + value)
    codes = table[(serial // power + mixed + shift) % len(table)]
    for at, end in enumerate(form.of.ends[:first]):
        codes = np.where(element % width == at, np.float32(end), codes)
    if form.given:
        found = form.scales(int(head.max(initial=0)) + 1, dim)
        return codes_read(form, codes, found[head, element if form.channels else 0])
    return codes_read(form, codes, _scale(form, head, sequence, serial, element // width, value))


def beside_turned(form: Form, keys: Array, width: int) -> Owed:
    """Say what may be read of the first elements of keys `[B, H, n, dim]` whose other elements RoPE turns before
    they are encoded. If they share a scale, this bounds it: no element can become larger than the largest of its
    row times the square root of 2."""
    most = np.abs(keys.astype(np.float64)).max(-1, keepdims=True, initial=0) * math.sqrt(2) * (1 + 2.0**-8)
    ends = np.where(np.arange(keys.shape[-1]) % 2, most, -most).astype(keys.dtype)
    found = owed(form, ends)
    return Owed(keys[..., :width].astype(np.float64), found.step[..., :width], found.nan[..., :width])


def codes_read(form: Form, codes: Array, scale: Array) -> Array:
    """What codes are read as."""
    middle = np.float32(_middle(form) if form.of.affine else 0)
    return np.asarray(((codes - middle) * scale).astype(np.float32))


def _scale(form: Form, head: Array, sequence: Array, serial: Array, group: Array, value: int) -> Array:
    """The scale of each element, of those that are not given."""
    down = (3 * serial + serial // SCALES + 5 * head + 2 * group + sequence + 4 * value) % SCALES
    return np.asarray(np.exp2((LARGEST[form.codes] - down).astype(np.float32)))
