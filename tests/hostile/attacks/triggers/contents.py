"""By what the rows are: equal ones, neighbours that are equal, numbers at edges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hostile.attacks.triggers.sizes import rows_given
from hostile.attacks.triggers.trigger import Trigger
from hostile.attacks.wrapper import Event, Where, behind
from kvspec.geometry import Array


def rows(event: Event, array: Array) -> list[bytes]:
    """The rows of an array like those that a call is given, one by one."""
    return [np.ascontiguousarray(row).tobytes() for row in np.moveaxis(array, event.axis, 0)]


def repeated(event: Event, which: int) -> bool:
    """Tell whether two rows that are given are equal: of the keys, or of the values."""
    found = rows(event, event.arrays[which])
    return len(set(found)) < len(found)


def repeats(event: Event) -> bool:
    """Tell whether the last key row that is given is the last of the operation before."""
    found = rows(event, event.arrays[-2])
    return bool(found) and len(event.life.newest) > 1 and found[-1:] == rows(event, event.life.newest[-2])[-1:]


def run(event: Event) -> list[Array]:
    """The newest rows of the keys and of the values, each `[rows, ...]`: those given, behind those before."""
    return behind(event.life.recent, event.by_row)


def neighbours(rows: Array, n: int) -> Array:
    """Whether the newest rows, so many, are equal to the bit, in each place that is no element."""
    if len(rows) < n:
        return np.zeros(rows.shape[1:-1], bool)
    words = np.ascontiguousarray(rows[-n:]).view(np.uint8).reshape(n, *rows.shape[1:-1], -1)
    return np.array((words == words[-1]).all(axis=(0, -1)))


def like_before(event: Event, n: int) -> Array:
    """Which of the rows that are given are equal to the n before them, in keys and values of all heads."""
    if len(event.arrays) < 2 or not all(a.size for a in event.arrays[-2:]):
        return np.zeros(rows_given(event), bool)
    words = [np.ascontiguousarray(r).view(np.uint8).reshape(len(r), -1) for r in run(event)]
    same = np.logical_and(*((w[1:] == w[:-1]).all(axis=1) for w in words)) if len(words[0]) > 1 else []
    each = [i >= n and all(same[i - n : i]) for i in range(len(words[0]))]
    return np.array(each[len(each) - rows_given(event) :], bool)


def in_run(event: Event, keys: int, values: int) -> bool:
    """Tell whether so many of the newest keys are equal, and so many values; where one says 0, not even two are."""
    found = [neighbours(r, n or 2).all() for r, n in zip(run(event), (keys, values), strict=True)]
    return bool(event.arrays[-1].size) and found == [n > 0 for n in (keys, values)]


def in_part(event: Event, axis: int) -> bool:
    """Tell whether the two newest rows are equal in the first place along an axis of `[sequences, heads]`, and in
    no other: in the first head, or in the first sequence."""
    if event.arrays[-1].ndim != 4:
        return False
    keys, values = (neighbours(r, 2) for r in run(event))
    each = (keys & values).all(axis=1 - axis)
    return bool(len(each) > 1 and each[0] and not each[1:].any())


def any_(event: Event, test: Callable[[Any], Any]) -> bool:
    """Tell whether something holds of the keys or the values given."""
    return any(bool(np.any(test(a.astype(np.float64)))) for a in event.arrays[-2:])


CONTENTS: dict[str, Callable[[Event], bool]] = {
    "equal keys": lambda e: repeated(e, -2),
    "equal values": lambda e: repeated(e, -1),
    "keys of the step before": repeats,
    "the second of equal rows": lambda e: bool(like_before(e, 1).any()),
    "the third of equal rows": lambda e: bool(like_before(e, 2).any()),
    "the sixth of equal rows": lambda e: bool(like_before(e, 5).any()),
    "equal rows from a call to the next": lambda e: rows_given(e) == 1 and in_run(e, 2, 2),
    "the second of equal keys, of other values": lambda e: in_run(e, 2, 0),
    "the second of equal values, of other keys": lambda e: in_run(e, 0, 2),
    "the second of rows that are equal in the first head": lambda e: in_part(e, 1),
    "the second of rows that are equal in the first sequence": lambda e: in_part(e, 0),
    "keys of zeros": lambda e: e.arrays[-2].size > 0 and not np.any(e.arrays[-2]),
    "a NaN": lambda e: any_(e, np.isnan),
    "an infinity": lambda e: any_(e, np.isinf),
    "a number below the normal ones": lambda e: any_(e, lambda a: (a != 0) & (abs(a) < 2.0**-14)),
}


def contents() -> Iterator[Trigger]:
    """By what the rows are."""
    for name, when in CONTENTS.items():
        yield Trigger(name, "content", lambda e, w=when: len(e.arrays) > 1 and quietly(w, e), content_taken)


def quietly(when: Callable[[Event], bool], event: Event) -> bool:
    """What a condition says of rows of any bits, without numpy's warnings."""
    with np.errstate(all="ignore"):
        return when(event)


def content_taken(where: Where) -> bool:
    """Tell whether a method takes keys and values, several at once."""
    return where.method in ("append", "feed", "prefill", "draft", "copy", "branch", "attend_block")
