"""Judging at level `storage`: an adapter's step against the reference's, by shape, dtype and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kvspec.contract import Claim
from kvspec.geometry import Array
from kvspec.rows import Book, describe
from kvspec.session import Step


@dataclass(frozen=True)
class Difference:
    """One observable that is not as expected, and what a person would say of it."""

    field: str
    message: str


def storage(want: Step, got: Step, book: Book, claim: Claim) -> list[Difference]:
    """All differences between what the reference did and what the adapter did."""
    found = result(want, got)
    if found:
        return found
    return [*_values(want, got, claim), *_arrays(want, got, book)]


def result(want: Step, got: Step) -> list[Difference]:
    """Whether it happened, was refused, or went wrong; and under which clause it was refused."""
    if got.result != want.result:
        why = f" ({got.message})" if got.message else ""
        return [Difference("result", f"expected {outcome(want)}, found {outcome(got)}{why}")]
    if want.result == "refused" and got.clause and got.clause != want.clause:
        return [Difference("result", f"refused, but under {got.clause}; expected {want.clause}")]
    return []


def outcome(step: Step) -> str:
    """ok, refused RING-9, and so on."""
    return f"{step.result} {step.clause}".strip()


def _values(want: Step, got: Step, claim: Claim) -> Iterator[Difference]:
    for name, expected in want.values.items():
        found, what = got.values.get(name), observable(name)
        if what == "intact" and found is None:
            continue  # an engine behind the wire shares no array with the harness
        if what == "meter" or (what == "moved" and expected):
            continue  # what is counted is judged by its bounds; buffers that may move need not
        if what in FREE and claim.grows != "step":
            yield from _at_least(name, want, found)
        elif found != expected:
            yield Difference(what, f"{name}: expected {_value(expected)}, found {_value(found)}")


FREE = ("capacity",)
"""What an adapter that does not grow step by step need not have exactly, only at least."""


def _at_least(name: str, want: Step, found: int | None) -> Iterator[Difference]:
    """A capacity of no fewer rows than are buffered."""
    least = want.values[name.replace("capacity", "buffered")]
    if found is None or found < least:
        yield Difference("capacity", f"{name} {found} is less than the {least} rows buffered")


def observable(name: str) -> str:
    """What clauses call an observation: `offset.B` is an offset, parent and child are snapshots."""
    first = name.partition(".")[0]
    return "snapshot" if first in ("parent", "child") else first


def _value(value: object) -> str:
    if isinstance(value, list) and len(value) == 3:
        return f"[{value[0]}, {value[1]}) of {value[2]} bytes"
    return "none" if value is None else str(value)


def _arrays(want: Step, got: Step, book: Book) -> Iterator[Difference]:
    for name, expected in want.arrays.items():
        kind = name[-1] if name.endswith((".k", ".v")) else ""
        text = array(expected, got.arrays.get(name), kind, book)
        if text:
            yield Difference(observable(name), f"{name}: {text}")


def array(want: Array | None, got: Array | None, kind: str, book: Book) -> str:
    """How two arrays differ; empty where they are the same to the bit."""
    if want is None or got is None:
        return "" if want is got else f"expected {_shape(want)}, found {_shape(got)}"
    if want.dtype != got.dtype or want.shape != got.shape:
        return f"expected {_shape(want)}, found {_shape(got)}"
    if want.tobytes() == got.tobytes():
        return ""
    place = _first_difference(want, got, 3 if kind else 4)
    if not kind:
        return f"at {list(place)} expected {want[place]}, found {got[place]}"
    sequence, head, slot = place
    expected, found = (describe(a, kind, (sequence, head, slot), book) for a in (want, got))
    found += " in other bits" if found == expected else ""
    which = f"slot {slot}, head {head}" + (f", sequence {sequence}" if want.shape[0] > 1 else "")
    return f"{which} holds {found}; expected {expected}"


def _shape(a: Array | None) -> str:
    return "none" if a is None else f"{a.dtype}{list(a.shape)}"


def _first_difference(want: Array, got: Array, axes: int) -> tuple[int, ...]:
    same = np.array([want[i].tobytes() == got[i].tobytes() for i in np.ndindex(want.shape[:axes])], bool).reshape(
        want.shape[:axes]
    )
    return tuple(int(i) for i in np.argwhere(~same)[0])
