"""The page of bounds: on a small sample each is exceeded by nobody and reached; the page is about these bounds."""

from __future__ import annotations

import re
from itertools import chain

import numpy as np
import pytest

from kvspec.geometry import DTYPES, Array
from support.bounds import Used, steps, table
from support.bounds.table import Line
from tools import bounds
from tools.bounds import Measured

LINES = list(chain(*table.lines().values()))


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.what)
def test_a_bound_is_exceeded_by_nobody_and_reached(line: Line) -> None:
    assert bounds.measured(line, 1).wrong() == ""


def cells() -> list[list[str]]:
    """The lines of the tables that are published."""
    rows = re.findall(r"^\| (.+) \|$", bounds.PAGE.read_text(encoding="utf-8"), re.M)
    return [cells for row in rows if (cells := [cell.strip() for cell in row.split("|")])[0] != bounds.HEAD[0]]


def test_the_page_has_these_bounds_and_says_why_one_is_not_reached() -> None:
    said = cells()
    assert [row[:2] for row in said] == [[line.what, line.bound] for line in LINES]
    text = bounds.PAGE.read_text(encoding="utf-8")
    for line, row in zip(LINES, said, strict=True):
        assert row[4] == "–" or float(row[4]) <= 1
        assert 1 >= float(row[6]) >= line.least
        assert float(row[6]) >= table.HALF or f"*{line.what}*: {line.why}." in text


def test_the_page_has_torch_beside_all_that_compute_here() -> None:
    assert all(name in bounds.PAGE.read_text(encoding="utf-8") for name in ("torch", *steps.DEVICES, "opencl-fast"))


def test_every_form_of_the_table_is_one_of_each_sort_there_is() -> None:
    from kvspec.forms import CODES

    assert {text.partition(",")[0].partition("/")[0] for text in steps.FORMS} == {*CODES, "latent"}


def cut_off(text: str, x: Array) -> Array:
    """The reference's codes of rows that were moved by most of a scale before."""
    scale = np.abs(x.astype(np.float32)).max(-1, keepdims=True) / np.float32(7)
    return steps.reference(text, (x + scale).astype(x.dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("text", ["int8/1", "int4a/32", "e4m3/1", "q4_0"])
def test_codes_that_are_one_off_are_beyond(text: str, dtype: str) -> None:
    assert steps.one("off", cut_off, text, dtype, 0).share > 1


def test_a_bound_that_is_exceeded_and_one_that_is_too_wide_are_told() -> None:
    line = next(line for line in LINES if line.what == "int8/32, f32")
    (worst,) = [used for used in line.good(1) if used.by == "reference"]
    narrow, wide = (worst._replace(share=worst.share * factor) for factor in (1.1, 0.4))
    assert "off by 1.1" in Measured(line, [worst, narrow], []).wrong()
    assert "only 0." in Measured(line, [wide], []).wrong()
    assert Measured(line, [Used(0.2)], [worst]).wrong() == ""
