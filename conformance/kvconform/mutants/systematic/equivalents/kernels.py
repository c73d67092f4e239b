"""Mutants of the kernels' text that no trace can find, and why."""

from __future__ import annotations

SAME_NUMBER = "more items write the same number: it is made of a length that was read before anybody wrote"
SAME_LENGTHS = "more items do it, and each makes the same of the lengths, however often it is done"
NAN = "any NaN is as good as another where rows are cast"
LEAST = "the least normal number counts 1024 units of those below as well"
TWICE = "the values are copied once more, to the same place"
BOUNDED = "a line behind the last has no word that is asked for: each word is compared with the end"
NEXT_LINE = "the first word of the next line is looked at twice, and decided alike"
SAME_ENTRY = "more items write the same number into the same entry"
ZEROS = "equal numbers may be zeros of either sign, and what is subtracted from either is the same"
NAN_ALL = (
    "it differs where a maximum is NaN, and then the sum of weights is NaN anyway; no maximum is left out before"
)
FIRST = "what is joined first has all the weight: 0 times anything finite is added"
ONE_EACH = "with no more tiles than splits, one for each is what the division gives, too"
NO_ROWS = "tiles behind the last have no rows that are seen, and come to nothing"
ONE_ENTRY = "pages are attended to a sequence at a time: there is one entry, 0, whose stride is 0"
RAGGED = (
    "while the layers of a sequence differ attends and steps are refused, and what makes them alike again sets or cuts "
    "all lengths to what the layers then have"
)

ARGUED: dict[str, str] = {
    # step and place
    "kernels/step.STEP: if (ITEM(0) == 0 && ITEM(1) == 0): always": SAME_NUMBER,
    "kernels/step.STEP: 0 became 1 in ITEM(0) == 0 #1": SAME_NUMBER,
    "kernels/step.STEP: && became || in ITEM(0) == 0 && ITEM(1) == 0": SAME_NUMBER,
    "kernels/step.STEP: 1 became 2 in ITEM(1) == 0": SAME_NUMBER,
    "kernels/place.PLACE: 0 became 1 in ITEM(0) == 0 #1": SAME_NUMBER,
    "kernels/place.PLACE: 1 became 2 in ITEM(1) == 0": SAME_NUMBER,
    "kernels/place.PLACE: 2 became 0 in ITEM(2) == 0": SAME_NUMBER,
    # scatter
    "kernels/scatter.SCATTER: if (GROUP(0) == 0 && GROUP(1) == 0 && GROUP(2) == 0 && ITEM(0) == 0): always": (
        SAME_LENGTHS
    ),
    "kernels/scatter.SCATTER: 0 became 1 in GROUP(0) == 0 #1": SAME_LENGTHS,
    "kernels/scatter.SCATTER: 1 became 2 in GROUP(1) == 0": SAME_LENGTHS,
    "kernels/scatter.SCATTER: 2 became 0 in GROUP(2) == 0": SAME_LENGTHS,
    "kernels/scatter.SCATTER: && became || in GROUP(0) == 0 && GROUP(1) == 0 && GROUP(2) == 0 && ITEM(0) == 0": (
        SAME_LENGTHS
    ),
    "kernels/scatter.SCATTER: > became >= in lengths[lengths_at + l] > rows": (
        "a length of so many rows becomes what it is"
    ),
    # lengths
    "kernels/lengths.bound: < became <= in lengths[first + i] = n < low": "n of `low` becomes what it is",
    "kernels/lengths.bound: > became >= in n > high": "n of `high` becomes what it is",
    "kernels/lengths.clear: < became <= in line * width < words": "no rows lie in a line behind the last",
    "kernels/lengths.clear: < became <= in j < width": (
        "the first word of the next line is looked at twice, and decided alike"
    ),
    "kernels/lengths.clear: + became - in i64 line = GROUP(0) * ITEMS(1) + ITEM(1)": (
        "each item begins at another line, some before the buffer where no rows lie; every line still has one"
    ),
    # casts
    "kernels/casts.bf16_of: 0x7fc0 became 0x7fc1 in return 0x7fc0u": NAN,
    "kernels/casts.f16_of: 0x7e00 became 0x7e01 in return 0x7e00u": NAN,
    "kernels/casts.f16_of: 0x477ff000 became 0x477ff001 in size >= 0x477ff000u": "65520 rounds to infinity",
    "kernels/casts.f16_of: >= became > in size >= 0x477ff000u": "65520 rounds to infinity",
    "kernels/casts.f16_of: >= became > in size >= 0x38800000u": LEAST,
    "kernels/casts.f16_of: 0x38800000 became 0x38800001 in size >= 0x38800000u": LEAST,
    "kernels/casts.f16_of: < became <= in size < 0x33000000u": "half the least number rounds to zero",
    "kernels/casts.f16_of: 0x33000000 became 0x33000001 in size < 0x33000000u": (
        "half the least number rounds to zero"
    ),
    # page and copy
    "kernels/copy.COPY: < became <= in part < parts": TWICE,
    "kernels/move.MOVE: < became <= in part < parts": TWICE,
    "kernels/page.PAGE: < became <= in part < 2": TWICE,
    "kernels/page.PAGE: 2 became 3 in part < 2": TWICE,
    # prepare and tables
    "kernels/prepare.prepare: < became <= in line * width < words": BOUNDED,
    "kernels/prepare.prepare: < became <= in j < width": NEXT_LINE,
    "kernels/tables.number: if (ITEM(0) == 0): always": SAME_ENTRY,
    "kernels/tables.poison: < became <= in line * width < keys_bytes + values_bytes": BOUNDED,
    "kernels/tables.poison: < became <= in j < width": NEXT_LINE,
    # strict
    "kernels/strict.larger: > became >= in return a > b": ZEROS,
    "kernels/strict.below: ? never in return x == UNSEEN ? x": NAN_ALL,
    "kernels/strict.f16_in: >= became > in size >= 0x400u": LEAST,
    "kernels/strict.f16_in: 0x400 became 0x401 in size >= 0x400u": LEAST,
    "kernels/strict.quotient: * became + in return a * b": "infinity and NaN stay what they are in a sum with 1 or more, too",
    "kernels/strict.quotient: < became <= in rest < divisor": "a quotient of 1 becomes 0.111..., which is rounded up to it",
    "kernels/strict.quotient: > became >= in const int above = exponent > 1": "1 less 1 is 0, as on the other side",
    "kernels/strict.attend_join: 0.0 became 1.0 in l = 0.0f": FIRST,
    "kernels/strict.attend_join: 0.0 became 1.0 in a = 0.0f": FIRST,
    # attend
    "kernels/attend.ATTEND: > became >= in const i64 each = tiles > splits": ONE_EACH,
    "kernels/attend.ATTEND: ? always in const i64 each = tiles > splits ? ((u32)tiles + (u32)splits - 1) / (u32)splits": ONE_EACH,
    "kernels/attend.ATTEND: + became - in split + 1 #1": NO_ROWS,
    "kernels/attend.ATTEND: < became <= in const i64 stop = (split + 1) * each < tiles": "as many as there are, either way",
    "kernels/attend.ATTEND: ? always in const i64 stop = (split + 1) * each < tiles ? (split + 1) * each": NO_ROWS,
    "kernels/attend.ATTEND: 0.0 became 1.0 in l = 0.0f": FIRST,
    "kernels/attend.ATTEND: 0.0 became 1.0 in part[2 + j] = 0.0f": FIRST,
    "kernels/attend.ATTEND: if (item == 0): always": "every item has the same numbers, and writes them",
    "kernels/attend.ATTEND: < became <= in i < TILE #1": "what lies behind the scores of a tile is written, which is the next array's, and written again before it is read",
    "kernels/row_of_pages: + became - in tables_at + entry * tables_stride + (u32)p / (u32)slots #1": ONE_ENTRY,
    "kernels/row_of_pages: * became + in tables_at + entry * tables_stride + (u32)p / (u32)slots": ONE_ENTRY,
    "kernels/scatter.SCATTER: < became <= in l < first + layers": RAGGED,
    "kernels/scatter.SCATTER: if (copied || lengths[lengths_at + l] > rows): always": RAGGED,
    "kernels/scatter.SCATTER: && became || in const int copied = l >= first && l < first + layers": RAGGED,
    "kernels/attend.ATTEND: if (highest != UNSEEN): always": (
        "what has no rows weighs 0, and the zero that it may make positive attend_join makes so too"
    ),
}
