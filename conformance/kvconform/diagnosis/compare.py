"""Compares the answers of two adapters to one trace: to the bit at level storage, else by what queries see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from kvconform.judge import storage
from kvconform.judge.levels import mask_columns, visible
from kvconform.judge.lockstep import observables
from kvconform.judge.trial_result import TrialResult
from kvconform.oracle.expected import Expected
from kvspec.contract import Claim, Description
from kvspec.geometry import Array
from kvspec.operations.table import Operation, cache_of
from kvspec.rows.book import SerialBook
from kvspec.session.step import Step
from kvspec.trace import Trace, opening


def alike(one: TrialResult, other: TrialResult, adapter: Description) -> bool:
    """Whether two adapters answered every operation of the same trace alike; `adapter` is what the first claims.

    Costs may differ, but both must keep and break the same bounds.
    """
    if len(one.steps) != len(other.steps) or _differences(one) != _differences(other):
        return False
    same = _same_storage if one.level == "storage" else _same_sight
    return same(one, other, adapter)


def _differences(result: TrialResult) -> list[tuple[str, str]]:
    """The fields that differed from the oracle, and the clauses of broken bounds."""
    return [(d.field, d.clause) for d in result.differences]


def _same_storage(one: TrialResult, other: TrialResult, adapter: Description) -> bool:
    """Compare shapes, dtypes and bytes, as the judge does with the reference's answers."""
    claims = _claims(one.trace, adapter)
    pairs = zip(one.trace.ops, one.steps, other.steps, strict=False)
    return not any(
        storage.storage(theirs, ours, one.book, claims.get(cache_of(op), claims["A"]), claims)
        for op, (_, ours), (_, theirs) in pairs
    )


def _claims(trace: Trace, adapter: Description) -> dict[str, Claim]:
    """The claims on the caches of a trace, by letter. With rounds, a growing cache owes no capacity."""
    kinds = {cache_of(op): opening(trace, op)[0] for op in trace.ops if op["op"] == "open"}
    claims = {letter: adapter.chapters[kind] for letter, kind in {"A": trace.kind, **kinds}.items()}
    if any(op["op"] == "speculate" for op in trace.ops):
        claims = {letter: replace(claim, grows="free") for letter, claim in claims.items()}
    return claims


def _same_sight(one: TrialResult, other: TrialResult, adapter: Description) -> bool:
    """Compare what can be seen of each step; numbers may differ by twice their bound."""
    masked = "mask" in observables(one.trace, adapter, one.level)
    sights = Sight(one.book, masked), Sight(one.book, masked)
    for op, (want, ours), (_, theirs) in zip(one.trace.ops, one.steps, other.steps, strict=False):
        if not isinstance(want, Expected) or want.result == "any":
            continue
        if sights[0].facts(op, want, ours) != sights[1].facts(op, want, theirs) or not _near(want, ours, theirs):
            return False
        if ours.clause and theirs.clause and ours.clause != theirs.clause:
            return False
    return True


class Sight:
    """What can be seen of one adapter's steps on one trace; remembers the histories."""

    def __init__(self, book: SerialBook, masked: bool) -> None:
        self.book, self.masked = book, masked
        self.histories: dict[mask_columns.Looked, Any] = {}

    def facts(self, op: Operation, want: Expected, step: Step) -> tuple[Any, ...]:
        """The answers that an adapter owes at level `visible`."""
        values = {
            n: visible.shown(n, step.values.get(n), v)
            for n, v in want.values.items()
            if n not in ("intact", "moved")
        }
        rows = {name: self._names(step, name) for name in want.rows}
        return step.result, values, rows, self._sees(op, want, step)

    def _names(self, step: Step, name: str) -> Any:
        """The names of the rows of an array, of keys and of values."""
        pair = step.arrays.get(f"{name}.k"), step.arrays.get(f"{name}.v")
        return [
            None if a is None or a.ndim != 4 else self.book.read(a, k).tolist()
            for a, k in zip(pair, "kv", strict=True)
        ]

    def _sees(self, op: Operation, want: Expected, step: Step) -> Any:
        """The rows that each query sees, in every head of every sequence."""
        if want.sees is None:
            return None
        looked = mask_columns.looked(op)
        if "history.k" in step.arrays:
            self.histories[looked] = self._names(step, "history")
        keys, values = self.histories.get(looked, (None, None))
        if keys is None or values is None or np.shape(keys) != np.shape(values):
            return "no history"
        mask = step.arrays.get("mask") if self.masked else None
        return list(_queries(keys, values, mask, [len(heads[0]) for heads in want.sees]))


def _queries(keys: Any, values: Any, mask: Array | None, counts: list[int]) -> Iterator[Any]:
    """For each query the rows it sees, with their scores, sorted."""
    heads = max(len(keys[0]), mask.shape[1] if mask is not None and mask.ndim == 4 else 1)
    for sequence, head in product(range(min(len(keys), len(counts))), range(heads)):
        own = min(head, len(keys[sequence]) - 1)
        names = list(zip(keys[sequence][own], values[sequence][own], strict=True))
        indices = list(range(len(names)))
        for query in range(counts[sequence]):
            rows = visible.seen(indices, mask, (sequence, head), query)
            yield None if rows is None else sorted((names[i], score) for i, score in rows)


def _near(want: Expected, step: Step, theirs: Step) -> bool:
    """Whether outputs and rotated rows are near: each may be off by its bound, so two of them by twice that."""
    bounds = {"output": want.outputs and want.outputs[1], "rotated": want.rotated and want.rotated[1]}
    return all(
        _within(step.arrays.get(name), theirs.arrays.get(name), bound)
        for name, bound in bounds.items()
        if bound is not None
    )


def _within(one: Array | None, other: Array | None, bound: Array) -> bool:
    if one is None or other is None or one.shape != other.shape or one.dtype != other.dtype:
        return one is other
    with np.errstate(invalid="ignore"):
        a, b = one.astype(np.float64), other.astype(np.float64)
        return bool(((np.abs(a - b) <= 2 * bound) | (a == b) | (np.isnan(a) & np.isnan(b))).all())
