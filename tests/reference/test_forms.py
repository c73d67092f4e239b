"""Rows in a form against sums on exact fractions, one element at a time, and against the bytes that ggml makes."""

import hashlib
import math
import struct
import warnings
from bisect import bisect_left
from fractions import Fraction
from functools import cache

import ml_dtypes
import numpy as np
import pytest

from kvref.arithmetic.forms import decoded, encoded, parts
from kvspec.forms import CODES, PATTERN, Form, owed, parsed, step
from kvspec.geometry import DTYPES, TEXTS
from support.samples.form_rows import rows

WIDTHS = (64, 128, 576)
SCALED = ("int8/1", "int8/32", "int4/1", "int4/32", "int8a/64", "int4a/32", "e4m3/1", "e4m3/32", "e5m2/1")
GIVEN = ("e4m3/t", "e4m3/t:0.03", "e4m3/h:2:0.5:0.07", "e5m2/t:0.001", "e5m2/h:1:3", "e4m3/c:2:0.5:0.07")
WHOLE_GIVEN = ("int8/t:0.05", "int8/h:2:0.03", "int8/c:0.5:0.07:2", "int4/t:0.5", "int4/c:0.5:2:0.3")


def f32(fraction):
    """The nearest number of 32 bits, ties to even."""
    return Fraction(float(np.float32(struct.unpack("f", struct.pack("f", _to_f32(fraction)))[0])))


def _to_f32(x):
    if x == 0:
        return 0.0
    exponent = max(-126, math.floor(math.log2(abs(x))))
    exponent += (abs(x) >= Fraction(2) ** (exponent + 1)) - (abs(x) < Fraction(2) ** exponent and exponent > -126)
    return float(round(x / Fraction(2) ** (exponent - 23)) * Fraction(2) ** (exponent - 23))


@cache
def floats(codes):
    """The finite numbers of a float of 8 bits, by its bits, from its definition."""
    mantissa, bias = {"e4m3": (3, 7), "e5m2": (2, 15)}[codes]
    made = {}
    for bits in range(128):
        exponent, low = bits >> mantissa, bits & ((1 << mantissa) - 1)
        whole = Fraction(low, 1 << mantissa) + (exponent > 0)
        made[bits] = whole * Fraction(2) ** (max(exponent, 1) - bias)
    top = 126 if codes == "e4m3" else 123
    return {bits: number for bits, number in made.items() if bits <= top}


def nearest_float(quotient, table):
    """The bits of the nearest number, the even one of two, the largest beyond."""
    size, numbers = abs(quotient), list(table.values())
    above = min(bisect_left(numbers, size), len(numbers) - 1)
    bits = min((max(0, above - 1), above), key=lambda b: (abs(table[b] - size), b & 1))
    return bits | (128 if quotient < 0 else 0)


def expected_codes(form, group, scale, low):
    """The code of each element of a group of fractions."""
    of = CODES[form.codes]
    if form.codes in ("e4m3", "e5m2"):
        table = floats(form.codes)
        return [nearest_float(f32(x / scale) if scale else Fraction(0), table) for x in group]
    least = 0 if of.affine else -int(of.top)
    return [min(int(of.top), max(least, round(f32(f32(x - low) / scale)))) if scale else 0 for x in group]


@pytest.mark.parametrize("text", SCALED)
@pytest.mark.parametrize("dim", WIDTHS)
def test_codes_and_scales_are_those_of_exact_sums(text, dim):
    form = parsed(text)[0]
    x = rows(dim, n=8)[:, :, :: 1 if dim == 64 else 5]
    found = parts(form, encoded(form, x), dim)
    width = form.group or dim
    for head, row, group in list(np.ndindex(2, x.shape[2], dim // width))[:: 1 if dim == 64 else dim // 64]:
        own = [Fraction(float(v)) for v in x[0, head, row, group * width : (group + 1) * width]]
        low = min(own) if form.of.affine else Fraction(0)
        most = f32(max(own) - low) if form.of.affine else max(map(abs, own))
        scale = f32(most / Fraction(form.of.top))
        assert Fraction(float(found.scale[0, head, row, group, 0])) == scale
        codes = found.codes[0, head, row, group * width : (group + 1) * width]
        codes = codes.view(np.uint8) if form.codes.startswith("e") else codes
        wanted = expected_codes(form, own, scale, low)
        if form.codes.startswith("e"):
            wanted = [w & 127 if w & 127 == 0 and v == 0 else w for w, v in zip(wanted, own, strict=True)]
            codes = [
                int(c) & 127 if int(c) & 127 == 0 and v == 0 else int(c) for c, v in zip(codes, own, strict=True)
            ]
        assert [int(c) for c in codes] == wanted


@pytest.mark.parametrize("text", GIVEN)
def test_given_scales_are_used_by_head(text):
    form, x = parsed(text)[0], rows(64, n=8)
    read = decoded(form, encoded(form, x), 64, np.dtype(np.float32))
    table = floats(form.codes)
    for head, row, i in np.ndindex(2, 8, 16):
        number = head * 64 + i if form.channels else head
        scale = Fraction(float(np.float32(form.given[number % len(form.given)])))
        bits = nearest_float(f32(Fraction(float(x[0, head, row, i])) / scale), table)
        number = table[bits & 127] * (-1 if bits & 128 else 1)
        assert Fraction(float(read[0, head, row, i])) == f32(number * scale)
    assert encoded(form, x).shape[-1] == 64


@pytest.mark.parametrize("text", WHOLE_GIVEN)
def test_whole_codes_are_the_nearest_multiples_of_given_scales(text):
    form, x = parsed(text)[0], rows(64, n=8)
    found, top = parts(form, encoded(form, x), 64), int(CODES[form.codes].top)
    for head, row, i in np.ndindex(2, 8, 64):
        number = head * 64 + i if form.channels else head
        scale = Fraction(float(np.float32(form.given[number % len(form.given)])))
        code = max(-top, min(top, round(f32(Fraction(float(x[0, head, row, i])) / scale))))
        assert int(found.codes[0, head, row, i]) == code
    assert encoded(form, x).shape[-1] == form.code_bytes(64)


def test_a_nan_is_code_0_of_whole_codes_and_infinity_the_last():
    x = np.array([[[[np.nan, np.inf, -np.inf, 3e38, -3e38, 1.0]]]], np.float32)
    for text, top in (("int8/t:0.5", 127), ("int4/t:0.5", 7)):
        form = parsed(text)[0]
        assert parts(form, encoded(form, x), 6).codes.ravel().tolist() == [0, top, -top, top, -top, 2]


def ggml_rows():
    """Rows 576 wide: of many sizes, zeros, scales too small for f16, ties."""
    random = np.random.default_rng(5)
    x = (random.standard_normal((64, 576)) * np.exp(random.normal(0, 3, (64, 1)))).astype(np.float32)
    x[3], x[4] = 0, 1e-7 * x[4]
    x[5, :32], x[6, :32] = np.arange(32) - 16.0, np.arange(32) * 0.5 - 7.5
    x[6, 0] = 127
    return x


GGML = {"q8_0": "6a3facf20b741937", "q4_0": "c55a44a7426ddd37"}
"""Hashes of what `quantize_row_q8_0_ref` and `quantize_row_q4_0_ref` of llama.cpp made of `ggml_rows`."""


@pytest.mark.parametrize("name", GGML)
def test_blocks_are_those_of_ggml(name):
    form = parsed(name)[0]
    kept = encoded(form, ggml_rows()[None, None])[0, 0]
    at = form.code_bytes(576)
    blocks = [kept[:, at:].reshape(64, 18, 2), kept[:, :at].reshape(64, 18, -1)]
    assert hashlib.sha256(np.concatenate(blocks, -1).tobytes()).hexdigest()[:16] == GGML[name]


def test_half_a_code_goes_away_from_zero_and_less_does_not():
    """The largest number below a half and a half are 1 in f32: a code must not follow from that sum."""
    below, x = np.nextafter(np.float32(0.5), np.float32(0)), np.zeros((1, 1, 1, 32), np.float32)
    x[..., :7] = 127, below, 0.5, 1.5, -below, -0.5, -1.5
    form = parsed("q8_0")[0]
    codes = parts(form, encoded(form, x), 32).codes[0, 0, 0, :7]
    assert codes.tolist() == [127, 0, 1, 2, 0, -1, -2]


@pytest.mark.parametrize("text", [*SCALED, *GIVEN, *WHOLE_GIVEN, "q8_0", "q4_0"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_read_lies_within_the_step_and_reaches_it(text, dtype):
    form, worst = parsed(text)[0], 0.0
    for seed in range(3):
        x = rows(64, dtype, seed)
        read = decoded(form, encoded(form, x), 64, DTYPES[dtype])
        off = np.abs(read.astype(np.float64) - x.astype(np.float64))
        may = step(form, x)
        assert (off <= may).all(), np.argwhere(off > may)[:3]
        worst = max(worst, float((off / may).max()))
    assert worst > (0.45 if form.of.affine else 0.8) or dtype == "bf16", worst


@pytest.mark.parametrize("text", ["int8/32", "int4/32", "int4a/32", "e4m3/1", "e5m2/32", "q8_0", "q4_0"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_group_with_nan_or_infinity_is_read_as_nan_and_no_other(text, bad):
    form, x = parsed(text)[0], rows(64)
    x[0, 1, 2, 40] = bad
    read = decoded(form, encoded(form, x), 64, np.dtype(np.float32))
    width = form.group or 64
    first = 40 // width * width
    assert np.isnan(read[0, 1, 2, first : first + width]).all()
    assert np.isfinite(read).sum() == read.size - width


def test_given_scales_keep_nan_and_end_at_the_largest_number():
    for text in ("e4m3/t", "e5m2/t"):
        form = parsed(text)[0]
        x = np.array([math.nan, math.inf, -1e6, 464, -math.inf, 0, -0.0, 1e-30], np.float32)[None, None, None]
        read = decoded(form, encoded(form, x), 8, np.dtype(np.float32))[0, 0, 0]
        top = form.of.top
        assert np.isnan(read[0])
        assert read[1:].tolist() == [top, -top, 448, -top, 0, 0, 0]
        assert np.signbit(read).tolist()[2:] == [True, False, True, False, True, False]


@pytest.mark.parametrize("text", ["int8/32", "int4a/32", "e4m3/1", "q8_0", "q4_0"])
def test_a_scale_that_underflows_reads_as_zeros(text):
    x = np.full((1, 1, 1, 64), 1e-44 if "q" not in text else 1e-8, np.float32)
    x[..., 1::2] *= -1
    form = parsed(text)[0]
    read = decoded(form, encoded(form, x), 64, np.dtype(np.float32))
    assert (np.abs(read) <= step(form, x) + np.abs(x)).all()
    assert np.isfinite(read).all()


@pytest.mark.parametrize("dim", [1, 3, 7, 5])
def test_rows_of_odd_width_are_packed_whole(dim):
    form = parsed("int4/1")[0]
    x = np.arange(1, 2 * dim + 1, dtype=np.float32).reshape(1, 1, 2, dim)
    x = x / x.max(-1, keepdims=True) * 7
    kept = encoded(form, x)
    assert kept.shape[-1] == form.row_bytes(dim) == -(-dim // 2) + 4
    assert np.abs(decoded(form, kept, dim, np.dtype(np.float32)) - x).max() <= 0.5


@pytest.mark.parametrize(
    ("text", "dim", "wanted"),
    [
        ("int8/32", 128, 144),
        ("int4/32", 128, 80),
        ("int4a/64", 128, 80),
        ("q8_0", 128, 136),
        ("q4_0", 64, 36),
        ("e4m3/t", 576, 576),
        ("e4m3/1", 576, 580),
        ("e5m2/h:1:2", 8, 8),
        ("int8a/1", 6, 14),
    ],
)
def test_bytes_of_a_row(text, dim, wanted):
    form = parsed(text)[0]
    assert form.row_bytes(dim) == wanted
    assert encoded(form, rows(dim)).shape[-1] == wanted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "int8",
        "int9/32",
        "int8/0",
        "int8/65537",
        "int8a/t",
        "int4a/c:1:2",
        "int8/c:1:0",
        "q8_0/c:1",
        "int4a/h:1",
        "e4m3/t:0",
        "e4m3/t:-1",
        "e4m3/h:1:inf",
        "e4m3/t:nan",
        "e4m3/t:1:2",
        "int8/32:1",
        "q8_0/32",
        "int8/32,",
        "int8/32,q4_0,q4_0",
        "e4m3/t:0.00000000000",
        "e4m3/h" + ":1" * 65,
        "int8/999999",
    ],
)
def test_forms_that_are_refused_say_what_may_stand_there(text):
    with pytest.raises(ValueError, match=r"form .*(must|can|serves|has|none)"):
        parsed(text)


def test_keys_and_values_may_have_forms_of_their_own():
    assert parsed("q8_0,int4a/32") == (Form("q8_0", 32), Form("int4a", 32))
    assert parsed("e4m3/t:0.5,e4m3/t:2")[1] == Form("e4m3", 0, (2.0,))
    assert ml_dtypes.finfo(parsed("e5m2/t")[0].of.dtype).max == 57344


def test_the_record_has_the_pattern_of_the_parser():
    assert TEXTS["form"] == PATTERN


def test_a_nan_of_bf16_that_signals_is_judged_without_a_warning():
    form, _ = parsed("int8/8")
    may = owed(form, np.ones((1, 1, 1, 8), np.float32)).at(0, 0)
    read = np.full((1, 8), 0x7F81, np.uint16).view(ml_dtypes.bfloat16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not may.allows(read).any()
