"""Whether two adapters answered a trace alike: to the bit where storage is judged, else by what queries see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from kvconform.judge import storage, visible
from kvconform.judge.trial import TrialResult
from kvconform.oracle.list_model import Expected
from kvspec.contract import Claim, Description
from kvspec.geometry import Array
from kvspec.operations.table import Operation, cache_of
from kvspec.registry import observed
from kvspec.rows import SerialBook
from kvspec.session.step import Step
from kvspec.trace import Trace, opening


def alike(found: TrialResult, other: TrialResult, adapter: Description) -> bool:
    """Whether both answered every operation of the same trace alike; `adapter` is what the first claims.

    What operations cost need not be alike, as long as the same bounds are kept and broken.
    """
    if len(found.steps) != len(other.steps) or _broken(found) != _broken(other):
        return False
    same = _stored if found.level == "storage" else _seen
    return same(found, other, adapter)


def _broken(outcome: TrialResult) -> list[tuple[str, str]]:
    """What differed from the oracle, and the clauses of bounds that were broken."""
    return [(d.field, d.clause) for d in outcome.differences]


def _stored(found: TrialResult, other: TrialResult, adapter: Description) -> bool:
    """By shape, dtype and bytes, as the reference's answers are judged."""
    claims = _claims(found.trace, adapter)
    pairs = zip(found.trace.ops, found.steps, other.steps, strict=False)
    return not any(
        storage.storage(theirs, got, found.book, claims.get(cache_of(op), claims["A"]), claims)
        for op, (_, got), (_, theirs) in pairs
    )


def _claims(trace: Trace, adapter: Description) -> dict[str, Claim]:
    """Those on the caches of a trace; of a growing cache that may have been in a round no capacity is owed."""
    kinds = {cache_of(op): opening(trace, op)[0] for op in trace.ops if op["op"] == "open"}
    claims = {letter: adapter.chapters[kind] for letter, kind in {"A": trace.kind, **kinds}.items()}
    if any(op["op"] == "speculate" for op in trace.ops):
        claims = {letter: replace(claim, grows="free") for letter, claim in claims.items()}
    return claims


def _seen(found: TrialResult, other: TrialResult, adapter: Description) -> bool:
    """By what can be seen of each step, and numbers within twice the bound that each of them has."""
    masked = "mask" in observed(adapter.chapters)
    eyes = Eyes(found.book, masked), Eyes(found.book, masked)
    for op, (want, got), (_, theirs) in zip(found.trace.ops, found.steps, other.steps, strict=False):
        if not isinstance(want, Expected) or want.result == "any":
            continue
        if eyes[0].facts(op, want, got) != eyes[1].facts(op, want, theirs) or not _near(want, got, theirs):
            return False
        if got.clause and theirs.clause and got.clause != theirs.clause:
            return False
    return True


class Eyes:
    """Looks at the steps of one adapter on one trace, and remembers the histories."""

    def __init__(self, book: SerialBook, masked: bool) -> None:
        self.book, self.masked = book, masked
        self.histories: dict[visible.Looked, Any] = {}

    def facts(self, op: Operation, want: Expected, got: Step) -> tuple[Any, ...]:
        """All that is owed at level `visible`, as it was found."""
        values = {
            n: _shown(n, got.values.get(n), v) for n, v in want.values.items() if n not in ("intact", "moved")
        }
        named = {name: self._names(got, name) for name in want.rows}
        return got.result, values, named, self._sees(op, want, got)

    def _names(self, got: Step, name: str) -> Any:
        """The rows of an array by their names, keys and values apart."""
        pair = got.arrays.get(f"{name}.k"), got.arrays.get(f"{name}.v")
        return [
            None if a is None or a.ndim != 4 else self.book.read(a, k).tolist()
            for a, k in zip(pair, "kv", strict=True)
        ]

    def _sees(self, op: Operation, want: Expected, got: Step) -> Any:
        """What each query sees, in every head of every sequence."""
        if want.sees is None:
            return None
        looked = visible.looked(op)
        if "history.k" in got.arrays:
            self.histories[looked] = self._names(got, "history")
        keys, values = self.histories.get(looked, (None, None))
        if keys is None or values is None or np.shape(keys) != np.shape(values):
            return "no history"
        mask = got.arrays.get("mask") if self.masked else None
        return list(_queries(keys, values, mask, [len(heads[0]) for heads in want.sees]))


def _queries(keys: Any, values: Any, mask: Array | None, counts: list[int]) -> Iterator[Any]:
    """For each query the rows it sees with their scores, in no order."""
    heads = max(len(keys[0]), mask.shape[1] if mask is not None and mask.ndim == 4 else 1)
    for sequence, head in product(range(min(len(keys), len(counts))), range(heads)):
        own = min(head, len(keys[sequence]) - 1)
        names = list(zip(keys[sequence][own], values[sequence][own], strict=True))
        places = list(range(len(names)))
        for query in range(counts[sequence]):
            through = visible.seen(places, mask, (sequence, head), query)
            yield None if through is None else sorted((names[i], score) for i, score in through)


def _shown(name: str, value: Any, expected: Any) -> Any:
    """A value as far as it is owed: of a snapshot where it begins and ends, of a ring's where it ends."""
    if name in ("snapshot", "parent", "child") and isinstance(value, list):
        return value[1:2] if expected is not None and len(expected) == 1 else value[:2]
    return value


def _near(want: Expected, got: Step, theirs: Step) -> bool:
    """Outputs and turned rows: each may be off by its bound, so two of them by twice that."""
    bounds = {"output": want.outputs and want.outputs[1], "rotated": want.rotated and want.rotated[1]}
    return all(
        _within(got.arrays.get(name), theirs.arrays.get(name), bound)
        for name, bound in bounds.items()
        if bound is not None
    )


def _within(one: Array | None, other: Array | None, bound: Array) -> bool:
    if one is None or other is None or one.shape != other.shape or one.dtype != other.dtype:
        return one is other
    with np.errstate(invalid="ignore"):
        a, b = one.astype(np.float64), other.astype(np.float64)
        return bool(((np.abs(a - b) <= 2 * bound) | (a == b) | (np.isnan(a) & np.isnan(b))).all())
