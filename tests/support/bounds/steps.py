"""How much of the step of its form an element that is read of a row is off by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from kvadapters import find
from kvref.arithmetic.forms import decoded, encoded
from kvspec.contract import Adapter
from kvspec.forms import CODES, Form, grouped, owed
from kvspec.geometry import DTYPES, Array, Config
from kvspec.geometry import forms as forms_of
from support.bounds import Used, used
from support.engines.foreign import forms as foreign
from support.samples.form_rows import rows

FORMS = (
    *("int8/1", "int8/32", "int4/1", "int4/32", "int8a/1", "int8a/32", "int4a/1", "int4a/32", "q8_0", "q4_0"),
    *("e4m3/1", "e4m3/32", "e4m3/t", "e4m3/t:0.03", "e4m3/h:2:0.07", "e5m2/1", "e5m2/32", "e5m2/t:0.001"),
    *("e5m2/h:1:3", "int8/t:0.05", "int4/h:0.5:2", "int8/c:0.5:0.05:0.2", "e4m3/c:0.5:2:0.07"),
    *("latent", "int8/32,latent", "e4m3/t,latent"),
)
"""The forms of the table; both parts of rows have them, and of latent rows the key is looked at."""

DIM = 64

Reads = Callable[[str, Array], Array]
"""Gives what is read of rows `[1, 2, n, DIM]` in a form."""


def reference(text: str, x: Array) -> Array:
    """The reference's arithmetic."""
    form = of_keys(text, x)
    return decoded(form, encoded(form, x), x.shape[3], x.dtype)


def nearest(text: str, x: Array) -> Array:
    """The nearest of all numbers that the form can say, in float64."""
    return np.asarray(x if text == "latent" else foreign.Form(text.partition(",")[0], x.shape[3]).kept(x))


def one_end_exact(text: str, x: Array) -> Array:
    """The end of the larger magnitude is kept to the bit, as mlx does, and the scale is what makes 0 a code."""
    form = of_keys(text, x)
    groups = grouped(form, x.astype(np.float32))
    least, most = groups.min(-1, keepdims=True), groups.max(-1, keepdims=True)
    below, top = np.abs(least) > np.abs(most), np.float32(CODES[form.codes].top)
    end, scale = np.where(below, least, most), (most - least) / top * np.where(below, 1, -1).astype(np.float32)
    with np.errstate(all="ignore"):
        steps = np.rint(end / scale)
        scale = np.where(scale == 0, scale, end / steps)
        codes = np.where(scale == 0, 0, np.clip(np.rint((groups - end) / scale), 0, top))
        return np.asarray((codes * scale + end).reshape(x.shape).astype(x.dtype))


def half_away(text: str, x: Array) -> Array:
    """Half a code goes away from zero; quotients are by the scale as it is stored; there is one code more below."""
    form = of_keys(text, x)
    groups, top = grouped(form, x.astype(np.float32)), np.float32(CODES[form.codes].top)
    scale = (np.abs(groups).max(-1, keepdims=True) / top).astype(form.of.scale).astype(np.float32)
    scale = form.scales(x.shape[1], x.shape[3])[None, :, None, None] if form.given else scale
    with np.errstate(all="ignore"):
        quotients = np.where(scale == 0, 0, groups / scale)
        codes = np.clip(np.copysign(np.floor(np.abs(quotients) + 0.5), quotients), -top - 1, top)
        return np.asarray((codes * scale).reshape(x.shape).astype(x.dtype))


def on_device(name: str) -> Reads:
    """What a growing cache of an adapter shows."""

    def shown(text: str, x: Array) -> Array:
        cache: Any = adapter(name).open("growing", config(text, x))
        cache.append(x, x)
        return np.asarray(cache.read("view").keys)

    return shown


@cache
def adapter(name: str) -> Adapter:
    """An adapter by name; it is loaded once."""
    return find.load(name)


AFFINE, SYMMETRIC = ("int8a", "int4a"), ("int8", "int4", "q8_0")
DEVICES = ("opencl", "cuda-cpu")


def implementations(text: str) -> Iterator[tuple[str, Reads]]:
    """All that encode this form, each in its own way."""
    codes = text.partition("/")[0]
    yield from {"reference": reference, "the nearest number": nearest}.items()
    if codes in AFFINE:
        yield "one end exact", one_end_exact
    if codes in SYMMETRIC:
        yield "half away from zero", half_away
    yield from ((name, on_device(name)) for name in DEVICES)


def worst(text: str, dtype: str, samples: int) -> list[Used]:
    """The worst element of each implementation over so many times 32 rows."""
    return [
        max(one(name, reads, text, dtype, seed) for seed in range(samples)) for name, reads in implementations(text)
    ]


def one(name: str, reads: Reads, text: str, dtype: str, seed: int) -> Used:
    """The worst element of 32 rows."""
    x = rows(DIM, dtype, seed)
    return used(name, reads(text, x), x, step(of_keys(text, x), x))


def step(form: Form, x: Array) -> Array:
    """How far elements may be off; keys beside latent values that are kept as they are, by nothing."""
    return np.zeros(x.shape) if form.plain else owed(form, x).step


def of_keys(text: str, x: Array) -> Form:
    """The form of keys like these."""
    found = forms_of(config(text, x))
    assert found is not None
    return found[0]


def config(text: str, x: Array) -> Config:
    """Of a cache for rows like these, in a form."""
    dtype = next(name for name, dtype in DTYPES.items() if dtype == x.dtype)
    return Config(1, x.shape[1], x.shape[3], x.shape[3], dtype, form=text)
