"""Attention over f32 rows on tensor cores, by parts of 16 bits: emulated, within the bound of ATTN-44 for f32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.device.attention_case import Case
from support.device.warp_cases import attended, check, plant, runtime, worst
from support.slow import one_in


def f32(**more: Any) -> Case:
    return Case("f32", 32, 32, **{"group": 3, "held": 100, "wrap": 100, "turn": 30, **more})


@pytest.mark.parametrize("power", [-100, -20, 20, 100])
def test_f32_rows_keep_all_their_bits(power: int) -> None:
    """Keys and values of any size; products with their smallest parts still count."""
    case = f32(window=50)
    case.values *= np.float32(2.0**power)
    case.queries *= np.float32(2.0**-power)
    case.keys *= np.float32(2.0**power)
    check(case)
    rounded = f32(window=50)
    rounded.queries, rounded.keys = case.queries, case.keys
    rounded.values = (case.values.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    assert worst(case, attended(runtime(), rounded)) > 1.0, "16 bits of a value would be seen"


@pytest.mark.parametrize("poison", [np.inf, -np.inf, np.nan, np.uint32(0x7F800001).view(np.float32)])
@pytest.mark.parametrize("poisoned", ["keys", "values"])
def test_what_is_not_finite_is_seen_and_nowhere_else(poisoned: str, poison: float) -> None:
    """One element of a row. The first part of the last poison is infinite, and only its last part says NaN."""
    case = f32(count=4)
    getattr(case, poisoned)[0, 0, 98, 3] = poison
    finite = np.isfinite(attended(runtime(), case)[0])
    assert finite[:, :2].all() and not finite[:, 2:, 3].any()
    assert finite[:, 2:].any() == (poisoned == "values"), "of values, only that element"


@pytest.mark.parametrize("slots", [5, 16])
def test_f32_rows_in_pages(slots: int) -> None:
    check(f32(window=40), slots)


def test_the_largest_numbers_are_no_infinity() -> None:
    case = f32(group=1)
    case.values[0, 0, 9, 3] = np.float32(1e37)
    check(case)


PLANTED = {
    "products left out that count": ("(part) + (other) < 3", "(part) + (other) < 2"),
    "a part of values twice": ("values[part][m] = parts[part]", "values[part][m] = parts[0]"),
    "keys of the chunk beside": ("m / 2 * 2 + (lane >> 1 & 1)", "m / 2 * 2 + (lane & 1)"),
    "values of another row": ("place<dim>(row + 1, d / 4)", "place<dim>(row, d / 4)"),
}  # fmt: skip
"""What was planted: a piece of the kernel, and what stands there instead."""


@pytest.mark.parametrize("bug", one_in(2, PLANTED))
def test_a_planted_bug_is_seen(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    some = [f32(group=1, held=n, wrap=n, turn=n // 2) for n in (1, 16)]
    for case in some:
        check(case)
    plant(monkeypatch, *PLANTED[bug])
    assert max(worst(case, attended(runtime(), case)) for case in some) > 1.0
