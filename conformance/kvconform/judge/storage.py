"""Judging at level `storage`: an adapter's step against the reference's, by shape, dtype and bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from kvspec.contract import Claim
from kvspec.geometry import Array
from kvspec.registry import TENSORS
from kvspec.rows.book import SerialBook, describe
from kvspec.rows.fills import settled
from kvspec.session.step import Step

Claims = Mapping[str, Claim]
"""What an adapter claims of each cache, by its letter."""

NONE: Claims = {}

ROWS = frozenset(("sees", "fold", *(tensor.name for tensor in TENSORS.values() if tensor.pair)))
"""Observables that are rows, or show them."""

SEEN = frozenset(("sees", "history", "mask"))
"""Observables that decide together which rows a query sees."""


@dataclass(frozen=True)
class Difference:
    """One observable that is not as expected, and the difference in words."""

    field: str
    words: str | Callable[[], str]
    """The message, or a function that makes it: describing rows takes as long as comparing them."""
    clause: str = ""
    """The clause that is broken, where only one can be."""
    name: str = ""
    """The value or array that differs, where it has a name of its own: `state.1.k` is that of a second sequence."""
    spares: frozenset[str] = frozenset()
    """Clauses on other parts than the one that differs: those of other layers."""

    @property
    def message(self) -> str:
        """What a person would say of it."""
        return self.words if isinstance(self.words, str) else self.words()


def storage(want: Step, got: Step, book: SerialBook, claim: Claim, others: Claims = NONE) -> list[Difference]:
    """All differences between what the reference did and what the adapter did.

    `claim` is that on the cache the operation was for, `others` those on caches observed by their letters.
    """
    found = result(want, got)
    if found:
        return found
    return [*_values(want, got, {"": claim, **others}), *_arrays(want, got, book)]


def result(want: Step, got: Step) -> list[Difference]:
    """Whether it happened, was refused, or went wrong; and under which clause it was refused."""
    if got.result != want.result:
        why = f" ({got.message})" if got.message else ""
        return [Difference("result", f"expected {outcome(want)}, found {outcome(got)}{why}")]
    if want.result == "refused" and got.clause and got.clause != want.clause:
        return [Difference("result", f"refused, but under {got.clause}; expected {want.clause}")]
    return []


ENDS = ("crash", "hang", "oom", "protocol")
"""Results of an operation that ended the worker, or broke the protocol."""


def unsaid(owed: str, got: Step) -> list[Difference]:
    """Whether an operation had a result that is owed, where nothing else is said of it; of `any` that it did not
    end the worker. An error is a refusal."""
    results = owed.split()
    found = {got.result, "refused"} if got.result == "error" else {got.result}
    if found & set(results) or ("any" in results and got.result not in ENDS):
        return []
    return [Difference("result", f"expected {owed}, found {outcome(got)}")]


def outcome(step: Step) -> str:
    """ok, refused CACHE-7, and so on."""
    return f"{step.result} {step.clause}".strip()


def _values(want: Step, got: Step, claims: Claims) -> Iterator[Difference]:
    for name, expected in want.values.items():
        found = got.values.get(name)
        if found == expected:
            continue
        what, claim = observable(name), claims.get(name.partition(".")[2], claims[""])
        if what == "intact" and found is None:
            continue  # an engine behind the wire shares no array with the harness
        if what == "meter" or (what == "moved" and expected):
            continue  # counts are judged by their bounds; buffers that may move need not
        if what in ("held", "plan") and claim.grows != "step" and _has_capacity(want):
            continue  # it follows from the adapter's own capacity: see `kvconform.judge.ledger`
        if what in FREE and claim.grows != "step":
            yield from _at_least(name, want, found)
        elif not agree(what, expected, found):
            yield Difference(what, f"{name}: expected {_value(expected)}, found {_value(found)}", name=name)


def agree(what: str, expected: object, found: object) -> bool:
    """Whether the found value equals the expected one. A sum only has to be within its bound."""
    if what != "fingerprint":
        return found == expected
    from kvspec.rows import fingerprint  # few traces have one

    return fingerprint.agree(str(expected), found)


FREE = ("capacity",)
"""What an adapter that does not grow step by step need not have exactly, only at least."""


def _has_capacity(want: Step) -> bool:
    """Whether the step is one of a cache with a capacity: its claim says whether it grows step by step."""
    return any(name.partition(".")[0] == "capacity" for name in want.values)


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


def _arrays(want: Step, got: Step, book: SerialBook) -> Iterator[Difference]:
    for name, expected in want.arrays.items():
        kind = name[-1] if name.endswith((".k", ".v")) else ""
        text = _array(name, expected, got.arrays.get(name), kind, book)
        if text:
            direction = _past_or_future(expected, got.arrays.get(name)) if name == "mask" else ""
            yield Difference(observable(name), text, name=direction or name)


def _past_or_future(want: Array | None, got: Array | None) -> str:
    """Whether a mask of several queries in position order lets only columns of the future through besides, or only
    older ones, or empty for others."""
    if want is None or got is None or want.shape != got.shape or want.dtype != bool or got.dtype != bool:
        return ""
    n, columns = want.shape[2:]
    later = np.arange(columns) > columns - n + np.arange(n)[:, None]
    if n < 2 or columns < n or (want & ~got).any():
        return ""
    future = later[np.nonzero(got & ~want)[2:]]
    return "future" if future.all() else "past" if not future.any() else ""


def _array(
    name: str, want: Array | None, got: Array | None, kind: str, book: SerialBook
) -> str | Callable[[], str]:
    """How two arrays differ, or empty where they are the same to the bit, the NaN of rows that were cast apart."""
    if want is got or (want is not None and got is not None and _same(want, got)):
        return ""
    if want is None or got is None or want.dtype != got.dtype or want.shape != got.shape:
        return f"{name}: expected {_shape(want)}, found {_shape(got)}"
    if not kind:
        unlike = [i for i in np.ndindex(want.shape) if settled(want[i]).tobytes() != settled(got[i]).tobytes()]
        if not unlike:
            return ""  # one NaN is as good as another
        place = unlike[0]
        return f"{name}: at {list(place)} expected {want[place]}, found {got[place]}"
    differing = (i for i in np.ndindex(want.shape[:3]) if not book.alike(want[i], got[i]))
    if (at := next(differing, None)) is None:
        return ""
    slots = [a[:, :, at[2] : at[2] + 1].copy() for a in (want, got)]
    return partial(_row, name, slots, kind, at, book)


def _same(want: Array, got: Array) -> bool:
    return want.dtype == got.dtype and want.shape == got.shape and want.tobytes() == got.tobytes()


def _row(name: str, slots: list[Array], kind: str, place: tuple[int, ...], book: SerialBook) -> str:
    """How a row differs; of both arrays the slot that it lies in, `[B, H, 1, dim]`, and where it does."""
    sequence, head, slot = place
    expected, found = (describe(a, kind, (sequence, head, 0), book) for a in slots)
    found += " in other bits" if found == expected else ""
    which = f"slot {slot}, head {head}" + (f", sequence {sequence}" if len(slots[0]) > 1 else "")
    return f"{name}: {which} holds {found}; expected {expected}"


def _shape(a: Array | None) -> str:
    return "none" if a is None else f"{a.dtype}{list(a.shape)}"
