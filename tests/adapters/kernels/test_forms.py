"""Rows in a form on a device: bytes and what is read of them are those of the reference, to the bit."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvgpu.adapter import Caches
from kvgpu.memory.layout import Geometry, Place
from kvgpu.memory.row_forms import Codec
from kvref.arithmetic import forms as definition
from kvspec.contract import Pair
from kvspec.forms import Form, parsed
from kvspec.geometry import DTYPES, Array, Config
from kvspec.notation import from_sentence
from support.device import kernel_faults
from support.device.devices import ADAPTERS, NAMES
from support.running.local_adapter import LocalAdapter
from support.slow import one_in

FORMS = (
    *("int8/1", "int4/3", "int8a/2", "int4a/3", "int4a/1", "e4m3/2", "e5m2/1", "e4m3/t:0.03", "e5m2/h:0.001:2"),
    *("q8_0", "q4_0", "q8_0,int4/3", "e4m3/h:2:0.5,int8a/6"),
    *("int8/t:0.05,int4/h:0.5:2:0.25", "int8/c:0.5:2:0.125:0.02,int4/c:0.3:4", "e4m3/c:0.5:2:0.25:3:0.01"),
)

BELOW_HALF = np.nextafter(np.float32(0.5), np.float32(0))
"""The largest number below a half: their sum in f32 is 1."""


def handed_in(dtype: str, dim: int, seed: int = 0) -> Array:
    """Rows `[2, 3, 12, dim]`: of all sizes, zeros, a constant, ties, an outlier, NaN and infinities, nearly half a
    code, any bits."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((2, 3, 12, dim)) * np.exp(random.normal(0, 6, (2, 3, 12, 1)))
    x[:, :, 1], x[:, :, 2], x[:, :, 3] = 0, 0.3, np.arange(dim) % 32 - 15.5
    x[:, 1, 4, 0], x[:, 0, 5, dim // 2], x[:, 1, 5, 0], x[:, :, 6] = 4e4, np.nan, -np.inf, x[:, :, 6] * 1e-38
    x[:, :, 9], x[:, :, 9, ::32] = BELOW_HALF, 127
    with np.errstate(over="ignore"):
        made = x.astype(np.float32).astype(DTYPES[dtype])
    made[:, :, 7:9] = random.integers(0, 256, (2, 3, 2, dim * made.itemsize), np.uint8).view(made.dtype)
    return made


DIMS = {False: (6, 12), True: (64, 96)}
"""Widths of keys and values, by whether rows have blocks of 32 elements."""


def _wide(form: str) -> bool:
    return "q" in form


def worked(ours: Caches, form: str, dtype: str) -> list[Array]:
    """The bytes that a device makes of keys and values, and what it reads of these."""
    k_dim, v_dim = DIMS[_wide(form)]
    config = Config(batch=2, kv_heads=3, k_dim=k_dim, v_dim=v_dim, dtype=dtype, form=form)
    codec, rows = Codec(ours.space, config), [handed_in(dtype, dim, i) for i, dim in enumerate((k_dim, v_dim))]
    made = codec.encoded(ours.space.staged(codec.plain, *rows))
    kept = _taken(ours, made, codec.kept)
    read = _taken(ours, codec.decoded(made, made.slots), codec.plain)
    return [a.reshape(2, 3, 12, -1) for a in (*kept, *(a.view(DTYPES[dtype]) for a in read))]


def _taken(ours: Caches, place: Place, geometry: Geometry) -> list[Array]:
    """The bytes of all keys, and those of all values."""
    sizes = (geometry.heads * place.slots * width for width in (geometry.k_bytes, geometry.v_bytes))
    ends = zip((place.keys_at, place.values_at), sizes, strict=True)
    return [np.array(ours.runtime.download(place.keys, at, size)).reshape(-1) for at, size in ends]


@cache
def defined(form: str, dtype: str) -> list[Array]:
    """The same by the reference."""
    rows = [handed_in(dtype, dim, i) for i, dim in enumerate(DIMS[_wide(form)])]
    kept = [definition.encoded(each, a) for each, a in zip(parsed(form), rows, strict=True)]
    both = zip(parsed(form), kept, rows, strict=True)
    return [*kept, *(definition.decoded(each, a, row.shape[3], DTYPES[dtype]) for each, a, row in both)]


def same(found: list[Array], expected: list[Array], form: str) -> bool:
    """Whether bytes are equal. A lowest element that is NaN or 0 may have any sign, and NaN that is read too."""
    both = zip(parsed(form), found[:2], expected[:2], DIMS[_wide(form)], strict=True)
    return all(_kept_alike(*each) for each in both) and all(map(_alike, found[2:], expected[2:]))


def _kept_alike(form: Form, found: Array, expected: Array, dim: int) -> bool:
    """Whether codes and scales are equal to the bit, and lowest elements as numbers."""
    a, b = definition.parts(form, found, dim), definition.parts(form, expected, dim)
    bits = all(x.tobytes() == y.tobytes() for x, y in zip(a[:2], b[:2], strict=True))
    return bits and np.array_equal(a.low, b.low, equal_nan=True)


def _alike(found: Array, expected: Array) -> bool:
    """Whether rows have the same bits, but for those of a NaN."""
    bits = found.view(f"u{found.itemsize}") == expected.view(f"u{expected.itemsize}")
    return bool((bits | (np.isnan(found) & np.isnan(expected))).all())


TRIED = one_in(3, FORMS)
"""The forms that are tried each time."""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", TRIED)
def test_a_device_makes_the_bytes_of_the_reference(form: str, name: str) -> None:
    for dtype in ("f32", "f16", "bf16"):
        assert same(worked(ADAPTERS[name](), form, dtype), defined(form, dtype), form), dtype


GROUP = "i < first + group; ++i) {\n      const float x = plain_at(from, i, dtype);\n      if (affine && x < least)"
CLIPPED = "q = q > top ? top : q < -top ? -top : q;\n    return"
GIVEN = "(head * form[9] + first) % many"

FAULTS = {
    "the scale of the first group for all": ("word_at(scales, scale_size)", "word_at(from + form[5], scale_size)"),
    "the scale of the first head for all": (
        f"scale = divisor = given[form[7] + {GIVEN}]",
        "scale = divisor = given[form[7]]",
    ),
    "the scale of the first channel for all": (GIVEN, "head % many"),
    "channels of each head counted anew": (GIVEN, "first % many"),
    "values with the form of keys": ("forms + 10 * part", "forms"),
    "codes in the other half": ("i / 16 % 2", "1 - i / 16 % 2"),
    "half a code away from zero": ("(x + 12582912.0f) - 12582912.0f", "(int)(x < 0.0f ? x - 0.5f : x + 0.5f)"),
    "the scale before it is rounded": ("scale = scale_size == 2 ? HALF_IN(half_bits) : whole", "scale = whole"),
    "quotients by the stored scale": ("divisor = scale_size == 2 ? whole : scale", "divisor = scale"),
    "numbers of the whole row for each group": (GROUP, GROUP.replace("first + group", "dim")),
    "NaN that is not noticed": ("right = size < 0x7f800000u", "right = 1"),
    "no lowest element": ("affine ? x + least : x, dtype", "x, dtype"),
    "heads counted over sequences": ("head % kv_heads", "head"),
    "rows of the first head": ("(head * from_slots + t) * (from_width)", "t * (from_width)"),
    "what is too large wraps": (CLIPPED, "return"),
    "what is too large for whole codes wraps": ("q = q < lowest ? lowest : q > top ? top : q;", ""),
    "small numbers are lost": ("sign | (BITS(FLOAT(size) + FLOAT(units)) - units)", "sign"),
}
"""Faults of the kernels, each as a change to their text."""


@pytest.mark.slow
def test_faults_of_the_kernels_are_found() -> None:
    found = kernel_faults.answers("forms", FAULTS, _wrong)
    assert found == [False] + [True] * len(FAULTS)


def _wrong(ours: Caches) -> bool:
    """Whether a device makes other bytes of rows in some form."""
    return not all(
        same(worked(ours, form, dtype), defined(form, dtype), form) for form in FORMS for dtype in DTYPES
    )


NANS = (
    "growing kv_heads=1 form=e4m3/t:0.5,e4m3/t:2: append 12 fill=edges",
    "sink batch=3 kv_heads=1 window=1 sinks=4 beside=1 shifted=1 form=e5m2/t:0.001: append 2 fill=bits",
)
"""Traces with NaN of either sign, which a device may read as another NaN."""


@pytest.mark.parametrize("sentence", NANS)
@pytest.mark.parametrize("name", NAMES)
def test_one_nan_is_as_good_as_another(name: str, sentence: str) -> None:
    assert not LocalAdapter(ADAPTERS[name]()).run(from_sentence(sentence)).failed


@pytest.mark.parametrize("sentence", NANS)
def test_a_nan_that_becomes_a_number_is_found(sentence: str) -> None:
    class Lost(Reference):
        def open(self, kind: str, config: Config) -> Any:
            cache = super().open(kind, config)
            read = cache.read
            cache.read = lambda what: Pair(*map(np.nan_to_num, read(what)))
            return cache

    assert LocalAdapter(Lost()).run(from_sentence(sentence)).failed
