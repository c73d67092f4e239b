"""Sums in f32: every order of addition lies within the bound, and what does not is found."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvadapters.reference import Reference
from kvref.caches.store import Store
from kvspec import notation
from kvspec.geometry import DTYPES, Array
from kvspec.rows import fingerprint as sums
from kvspec.wire import messages
from support.running.local_adapter import LocalAdapter

F32 = st.floats(-(2.0**100), 2.0**100, width=32)


def one_after_another(row: Array) -> float:
    total = np.float32(0)
    for x in row:
        total = np.float32(total + x)
    return float(total)


def in_pairs(row: Array) -> float:
    while len(row) > 1:
        row = np.append(row, np.float32(0)) if len(row) % 2 else row
        row = row[::2] + row[1::2]
    return float(row[0])


@given(st.lists(F32, min_size=1, max_size=64))
def test_every_order_lies_within_the_bound(numbers: list[float]) -> None:
    row = np.array(numbers, np.float32)
    wanted = sums.text(sums.exact(row))
    for order in (row, row[::-1], np.sort(row)):
        for found in (one_after_another(order), in_pairs(order), float(order.sum(dtype=np.float32))):
            assert sums.agree(wanted, sums.text(found)), (wanted, found)
    assert sums.agree(wanted, wanted) and len(wanted) <= messages.LONGEST_CLAUSE


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=64))
def test_whole_numbers_are_summed_exactly(numbers: list[int]) -> None:
    assert sums.text(sums.exact(np.array(numbers, np.float32))) == repr(float(sum(numbers)))


def test_a_sum_beyond_the_bound_is_found() -> None:
    row = np.array([1, 1e-3, -0.3] * 20, np.float32)
    found = sums.exact(row)
    assert found.error == pytest.approx(60 * 2**-24 * 26.02, rel=1e-3)
    wanted = sums.text(found)
    assert sums.agree(wanted, repr(found + 0.99 * found.error)) and sums.agree(wanted, repr(found - found.error))
    for wrong in (found + 1.02 * found.error, found - 1.02 * found.error, math.nan, math.inf):
        assert not sums.agree(wanted, repr(float(wrong)))
    assert not sums.agree(wanted, None) and not sums.agree(wanted, "about 14")


@pytest.mark.parametrize(
    ("numbers", "text", "agreeing", "not_so"),
    [
        ([1, math.inf], "inf", "inf", ("-inf", "nan", "1.0")),
        ([math.inf, -math.inf], "nan", "nan", ("inf", "0.0")),
        ([math.nan, 1, math.inf], "nan", "nan", ("inf", "1.0")),
        ([0.0, -0.0], "0.0", "-0.0", ("1e-45", "nan")),
        ([1, 2, 3], "6.0", "6.0", ("6.000001", "6", "nan")[:1]),
    ],
)
def test_nan_and_infinities_are_what_they_are(
    numbers: list[float], text: str, agreeing: str, not_so: tuple[str, ...]
) -> None:
    wanted = sums.text(sums.exact(np.array(numbers, np.float32)))
    assert wanted == text and sums.agree(wanted, agreeing)
    assert not any(sums.agree(wanted, x) for x in not_so)


def test_where_a_sum_may_overflow_on_the_way_nothing_is_said() -> None:
    wanted = sums.text(sums.exact(np.array([3e38, 3e38, -3e38], np.float32)))
    assert all(sums.agree(wanted, x) for x in ("inf", "nan", repr(float(np.float32(3e38)))))


class Crude(Store):
    """Adds up in the dtype of the rows."""

    def fingerprint(self, position: int) -> float:
        super().fingerprint(position)
        row = self.keys[0][0, position]
        total = row[0]
        for x in row[1:]:
            total = row.dtype.type(total + x)
        return float(total)


def test_a_fingerprint_that_is_added_up_in_too_few_bits_is_blamed() -> None:
    class Faulty(Reference):
        caches: ClassVar[dict[str, object]] = {**Reference.caches, "store": Crude}

    assert DTYPES["bf16"].itemsize == 2
    ops = "; ".join(["append 12 fill=bits", *(f"fingerprint {p}" for p in range(12))])
    for level in ("storage", "visible"):
        under_test = LocalAdapter(Faulty())
        under_test.adapter = under_test.adapter.at_most(level)
        seen = under_test.run(notation.trace("store", "layers=1 max_len=12 dtype=bf16 k_dim=33", ops))
        assert seen.failed and seen.blamed == ("STORE-27",), level
        assert not LocalAdapter(Reference()).run(seen.trace).failed
