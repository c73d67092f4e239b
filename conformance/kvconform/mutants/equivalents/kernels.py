"""Mutants of the kernels' text that no trace can find, and why."""

from __future__ import annotations

SAME_NUMBER = "more items write the same number: it is made of a length that was read before anybody wrote"
SAME_LENGTHS = "more items do it, and each makes the same of the lengths, however often it is done"
NAN = "any NaN is as good as another where rows are cast"
LEAST = "the least normal number counts 1024 units of those below as well"

ARGUED: dict[str, str] = {
    # step and place
    "kernels.step.inc: STEP: if (ITEM(0) == 0 && ITEM(1) == 0): always": SAME_NUMBER,
    "kernels.step.inc: STEP: 0 became 1 in ITEM(0) == 0 #1": SAME_NUMBER,
    "kernels.step.inc: STEP: && became || in ITEM(0) == 0 && ITEM(1) == 0": SAME_NUMBER,
    "kernels.step.inc: STEP: 1 became 2 in ITEM(1) == 0": SAME_NUMBER,
    "kernels.place.inc: PLACE: 0 became 1 in ITEM(0) == 0 #1": SAME_NUMBER,
    "kernels.place.inc: PLACE: 1 became 2 in ITEM(1) == 0": SAME_NUMBER,
    "kernels.place.inc: PLACE: 2 became 0 in ITEM(2) == 0": SAME_NUMBER,
    # scatter
    "kernels.scatter.inc: SCATTER: if (GROUP(0) == 0 && GROUP(1) == 0 && GROUP(2) == 0 && ITEM(0) == 0): always": (
        SAME_LENGTHS
    ),
    "kernels.scatter.inc: SCATTER: 0 became 1 in GROUP(0) == 0 #1": SAME_LENGTHS,
    "kernels.scatter.inc: SCATTER: 1 became 2 in GROUP(1) == 0": SAME_LENGTHS,
    "kernels.scatter.inc: SCATTER: 2 became 0 in GROUP(2) == 0": SAME_LENGTHS,
    "kernels.scatter.inc: SCATTER: && became || in GROUP(0) == 0 && GROUP(1) == 0 && GROUP(2) == 0 && ITEM(0) == 0": (
        SAME_LENGTHS
    ),
    "kernels.scatter.inc: SCATTER: > became >= in lengths[lengths_at + l] > rows": (
        "a length of so many rows becomes what it is"
    ),
    # lengths
    "kernels.lengths.inc: bound: < became <= in lengths[first + i] = n < low": "n of `low` becomes what it is",
    "kernels.lengths.inc: bound: > became >= in n > high": "n of `high` becomes what it is",
    "kernels.lengths.inc: clear: < became <= in line * width < words": "no rows lie in a line behind the last",
    "kernels.lengths.inc: clear: < became <= in j < width": (
        "the first word of the next line is looked at twice, and decided alike"
    ),
    "kernels.lengths.inc: clear: + became - in i64 line = GROUP(0) * ITEMS(1) + ITEM(1)": (
        "each item begins at another line, some before the buffer where no rows lie; every line still has one"
    ),
    # casts
    "kernels.casts.inc: bf16_of: 0x7fc0 became 0x7fc1 in return 0x7fc0u": NAN,
    "kernels.casts.inc: f16_of: 0x7e00 became 0x7e01 in return 0x7e00u": NAN,
    "kernels.casts.inc: f16_of: 0x477ff000 became 0x477ff001 in size >= 0x477ff000u": "65520 rounds to infinity",
    "kernels.casts.inc: f16_of: >= became > in size >= 0x477ff000u": "65520 rounds to infinity",
    "kernels.casts.inc: f16_of: >= became > in size >= 0x38800000u": LEAST,
    "kernels.casts.inc: f16_of: 0x38800000 became 0x38800001 in size >= 0x38800000u": LEAST,
    "kernels.casts.inc: f16_of: < became <= in size < 0x33000000u": "half the least number rounds to zero",
    "kernels.casts.inc: f16_of: 0x33000000 became 0x33000001 in size < 0x33000000u": (
        "half the least number rounds to zero"
    ),
}
