"""The steps of a trial, as reports draw them: each operation, with the rows that were observed after it."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import UNSET

from kvconform.judge.storage import observable
from kvconform.judge.trial_result import TrialResult
from kvconform.oracle.expected import SAVED, Expected
from kvspec.geometry import Array, Config
from kvspec.notation import words
from kvspec.operations.table import Operation
from kvspec.reading.columns import numbers
from kvspec.records.run import Observation, StepRecord
from kvspec.rows.book import SerialBook
from kvspec.rows.serials import POISONED, letters
from kvspec.session.step import Step
from kvspec.trace import caches_of

MOST = 256
"""Slots or queries of a step that are drawn. The rest is elided."""

DRAWN_ALONE = {"state": "slots", "history": "history", "view": "view"}
"""Rows that are the only ones of their sort in a step, and the keys of `Observation` for them."""

SNAPSHOTS = ("can", *SAVED, "bytes")
SAID = (
    *("accepts", "transfer", "spans", "brings", "drafted", "lengths", "sequences", "transfers", "moved"),
    *("fingerprint", "plan", "fit", "sequence", "free", "references", "table", "past", "bound", "key", "extent"),
    *("held", "meter"),
)
COUNTED = ("held", "meter")
"""Values that are shown beside the rows. Those of SNAPSHOTS differ at level visible; those of COUNTED are there
after every operation."""

DRAWN_AS = {
    **dict.fromkeys(("mask", "sees"), ("queries",)),
    **dict.fromkeys(("batch", "saved", "gathered", "packed", "page", "host", "handle"), ("layers",)),
    "state": ("slots", "layers"),
    "history": ("history", "queries", "layers"),
}
"""Keys of `Observation` for observables that have another name there."""


def steps(seen: TrialResult, told: Container[str] = ()) -> list[StepRecord]:
    """Every operation of the trial with the expected and found values; of the counts, only those `told`."""
    each = zip(caches_of(seen.trace), seen.trace.ops, seen.steps, strict=False)
    return [_step(config, op, want, got, seen.book, told) for config, op, (want, got) in each]


def _step(
    config: Config, op: Operation, want: Step, got: Step, book: SerialBook, told: Container[str]
) -> StepRecord:
    """An operation on a cache of this config, with the expected and found values."""
    book.look_at(config)
    expected, found = _expected(want, book, told), _seen(got, book, told)
    return StepRecord(do=words(op), clauses=list(want.cites), expected=expected, found=found, differs=[])


def failing_steps(seen: TrialResult) -> list[StepRecord]:
    """The same, with what differs marked in the last, and nothing that was not compared."""
    fields = {d.field for d in seen.differences}
    drawn = steps(seen, fields)
    if fields and drawn:  # where cache A was not opened, no operation is drawn
        drawn[-1].differs = _marked(drawn[-1], fields)
    return drawn


def _marked(step: StepRecord, fields: Collection[str]) -> list[str]:
    """The keys in which a step differs; of `other` the names of its values too."""
    expected, found = (said(side) for side in (step.expected, step.found))
    keys = {key for field in fields for key in DRAWN_AS.get(field, (field,))}
    there = [name for name in {**expected, **found} if name in keys or observable(name) in keys]
    unequal = [name for name in there if expected.get(name) != found.get(name)]
    marked = unequal or there  # a difference in dtype, shape or bits has no other letters
    return [*marked, "other"] if set(marked).difference(Observation.__struct_fields__) else marked


def said(seen: Observation) -> dict[str, Any]:
    """What an observation says, by name; values of `other` by their own."""
    said = {k: getattr(seen, k) for k in seen.__struct_fields__ if k != "other"}
    return {k: v for k, v in (said | (seen.get("other") or {})).items() if v is not UNSET}


def _expected(want: Step, book: SerialBook, told: Container[str]) -> Observation:
    if not isinstance(want, Expected):
        return _seen(want, book, told)
    seen = Observation(result=f"{want.result} {want.clause}".strip())
    if want.least is not None and "offset" in want.values:
        seen.offset = want.values["offset"]
    if want.sees is not None:
        seen.queries = [[letters(s) for s in sorted(q or ())] for q in want.sees[0][0][:MOST]]
    named = {name: [letters(s) for s in rows[:MOST]] for name, rows in want.rows.items()}
    for name in named.keys() & DRAWN_ALONE:
        setattr(seen, DRAWN_ALONE[name], named[name])
    seen.layers = {_label(n, want): r for n, r in named.items() if n not in DRAWN_ALONE} or UNSET
    middles = {"output": want.outputs, "rotated": want.rotated}
    wanted = {name: found and found.middle for name, found in middles.items()}
    seen.other = _other(want, SAID, told) | _numbers(wanted, told) or UNSET
    return seen


def _numbers(arrays: Mapping[str, Array | None], told: Container[str]) -> dict[str, Any]:
    """The numbers of head 0 of sequence 0, four digits each, of those arrays that are `told`. An output tells the
    first element of each query, and rotated rows tell every element."""
    found: dict[str, Any] = {}
    for name in ("output", "rotated"):
        array = arrays.get(name)
        if name in told and array is not None and array.ndim >= 4:
            shown = array.reshape(-1, *array.shape[-2:])[0][:MOST] if array.size else array.reshape(0, 1)
            found[name] = ", ".join(" ".join(numbers(row[:1] if name == "output" else row)) for row in shown)
    return found


def _seen(step: Step, book: SerialBook, told: Container[str]) -> Observation:
    seen = Observation(result=f"{step.result} {step.clause}".strip())
    for name in ("offset", "buffered", "capacity"):
        if name in step.values:
            setattr(seen, name, step.values[name])
    layers: dict[str, list[str] | None] = {}
    for name in dict.fromkeys(a.rpartition(".")[0] for a in step.arrays if a.endswith((".k", ".v"))):
        rows = _names(step.arrays.get(f"{name}.k"), step.arrays.get(f"{name}.v"), book)
        if name in DRAWN_ALONE:
            setattr(seen, DRAWN_ALONE[name], rows)
        else:
            layers[_label(name, step)] = rows
    seen.layers = layers or UNSET
    queries = _queries(step, book)
    seen.queries = UNSET if queries is None else queries
    seen.other = _other(step, ("offset.", *SNAPSHOTS, *SAID), told) | _numbers(step.arrays, told) or UNSET
    return seen


def _other(step: Step, names: Sequence[str], told: Container[str]) -> dict[str, Any]:
    """Values that have no key of their own, in the order of the names; `offset.` is that of a cache by letter."""
    first = {k: "offset." if k.startswith("offset.") else k.partition(".")[0] for k in step.values}
    shown = [n for n in names if n not in COUNTED or n in told]
    return {k: v for n in shown for k, v in step.values.items() if first[k] == n}


def _label(name: str, step: Step) -> str:
    """What one of several is called: state.0 is layer 0, or sequence 0 of a paged cache, state.B cache B, batch.0.1
    layer 0, sequence 1."""
    what, *which = name.split(".")
    if not which:
        return what
    if "sequences" in step.values and "lengths" not in step.values and not which[0].isupper():
        return f"sequence {which[0]}" if what == "state" else f"{what} of sequence {which[0]}"
    if what == "batch":
        return f"layer {which[0]}, sequence {which[1]}"
    if which[0].isupper():
        return f"cache {which[0]}" if what == "state" else f"{what} {which[0]}"
    return f"layer {which[0]}" if what == "state" else f"{what} layer {which[0]}"


def _names(keys: Array | None, values: Array | None, book: SerialBook) -> list[str] | None:
    """A name for each slot: that of the row, where keys and values of all heads and sequences hold it."""
    if keys is None or values is None or keys.ndim != 4 or values.ndim != 4:
        return None
    k, v = (
        book.read(a[:, :, :MOST], kind).reshape(a.shape[0] * a.shape[1], -1 if a.size else min(a.shape[2], MOST))
        for a, kind in ((keys, "k"), (values, "v"))
    )
    if k.shape[1] != v.shape[1]:
        return ["?"] * max(k.shape[1], v.shape[1])
    if book.by_value and k.shape == v.shape:
        k = np.where(np.isin(v, list(book.by_value)), v, k)
    both = np.concatenate([k, v])
    return [_name(both[:, slot]) for slot in range(both.shape[1])]


def _name(serials: Array) -> str:
    if (serials == POISONED).all():
        return "NaN"
    return letters(int(serials[0])) if (serials == serials[0]).all() else "?"


def _queries(step: Step, book: SerialBook) -> list[list[str]] | None:
    if "mask" not in step.arrays or "history.k" not in step.arrays:
        return None
    names = _names(step.arrays["history.k"], step.arrays.get("history.v"), book)
    mask: Any = step.arrays["mask"]
    if names is None or (mask is not None and (mask.ndim != 4 or mask.shape[3] not in (1, len(names)))):
        return None
    if mask is None:
        return [names]
    hidden = ~mask[0, 0, :MOST] if mask.dtype == bool else np.isneginf(mask[0, 0, :MOST])
    return [[n for n, h in zip(names, np.broadcast_to(row, len(names)), strict=True) if not h] for row in hidden]
