"""Worked examples as tests: compares a table with the values observed, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvconform.judge.ledger import launches_each
from kvconform.judge.levels import folds, visible, whole_buffer
from kvconform.judge.storage import outcome
from kvconform.judge.trial_result import TrialResult
from kvconform.oracle.expected import Expected, does_otherwise
from kvspec import masks
from kvspec.contract import Description, Lengths
from kvspec.geometry import Array
from kvspec.reading import columns
from kvspec.reading.columns import numbers
from kvspec.reading.examples import Example
from kvspec.registry import CACHES, HANDED_OUT, KINDS, RECORDS, needed
from kvspec.rows.book import SerialBook
from kvspec.rows.serials import letters
from kvspec.session.step import Step
from kvspec.trace import caches_of

OF_WIDTHS = {"bytes", "held", "plan", "fit", "host_to_device", "device_to_host", "device_to_device", "fingerprint"}
"""Columns that count bytes or add up elements: rows of other widths have others."""

NUMBERS = {"outputs", "rotated"}
"""How columns are read that show numbers, which wider rows make others."""


def disagreements(example: Example, seen: TrialResult, adapter: Description) -> list[str]:
    """Where the table and the adapter disagree; reads up to the adapter's first difference."""
    wrong = []
    configs = caches_of(seen.trace)
    for i, (row, (want, got), config) in enumerate(zip(example.rows, seen.steps, configs, strict=False)):
        seen.book.look_at(config)
        do = f"{example.id}, step {i + 1}"
        if does_otherwise(row.said, want, example, adapter):
            break  # the adapter declares something else than the table can show
        for column, said in row.said.items():
            if not _judged(column, seen.level, adapter, example):
                continue
            if isinstance(want, Expected) and column in want.between:
                continue  # it follows in part from what the adapter chooses, and was held to its bounds
            if isinstance(want, Expected) and column == "can rewind" and "can" not in want.values:
                continue  # the adapter chooses
            if isinstance(want, Expected) and column.startswith("output"):
                found: Any = _expected(column, want, said)
            else:
                found = _found(column, got, seen.book, said)
            if _of_stops(column, seen.level, example):
                found, said = _stops(found), _stops(said)
            if found != said:
                shown, seen_ = (_show(each, columns.column(column).reads) for each in (said, found))
                wrong.append(f"{do}: the example says {column} {shown}, found {seen_}")
    return wrong


def _judged(heading: str, level: str, adapter: Description, example: Example) -> bool:
    """Whether a column says anything of this adapter."""
    column, chapter, kind = columns.column(heading), columns.chapter(heading), example.trace.kind
    if chapter is not None and chapter not in KINDS and chapter not in adapter.chapters:
        return False
    if column.grown and kind in CACHES and adapter.chapters[kind].grows != "step":
        return False
    observer = {"can": "can", "history": "history", **dict.fromkeys(Lengths._fields, "offset")}.get(
        column.of or heading
    )
    if observer and kind in CACHES and observer not in adapter.observed((kind,)):
        return False
    shown_in = HANDED_OUT.get((column.of or heading).partition(".")[0])
    if shown_in in RECORDS[kind].observe and shown_in not in adapter.observed((kind,)):
        return False
    shown_by = "sees" if column.of.startswith("history") else "mask"
    if column.reads == "fold" and "fold" not in adapter.observed((kind,)):
        return False
    if column.reads == "queries" and shown_by not in adapter.observed((kind,)):
        return False  # the table does not say what a query sees
    if heading == "launches" and launches_each(adapter):
        return False  # the table counts one launch for keys and values
    if (heading in OF_WIDTHS or column.reads in NUMBERS) and not adapter.supports(example.trace.config):
        return False  # it was judged on rows of another size
    return level == "storage" or not column.storage


def _expected(column: str, want: Expected, said: list[str]) -> list[str] | None:
    """What the list model says of an output, which the adapter's has been held to within its bound; where that is
    infinite, anything."""
    if want.outputs is None:
        return None
    near = ~np.isposinf(_elements(column, want.outputs.bound))
    found = numbers(_elements(column, want.outputs.middle))
    return [f if n or i >= len(said) else said[i] for i, (f, n) in enumerate(zip(found, near, strict=True))]


def _elements(column: str, output: Array) -> Array:
    """The first element of each query's output, of the first layer, sequence and head if the column names none."""
    which = dict.fromkeys(("layer", "sequence", "head"), 0)
    if column != "output":
        word, number = column.split()[-2:]
        which[word] = int(number)
    layered = output if output.ndim == 5 else output[None]
    return np.asarray(layered[which["layer"], which["sequence"], which["head"], :, 0])


def _found(heading: str, got: Step, book: SerialBook, said: Any) -> Any:
    """The values found for a column, in the form of its cells."""
    column, which = columns.column(heading), columns.observation(heading)
    match column.reads:
        case "refusal":
            return _refusal(got, said)
        case "offset":
            return got.values.get(which) if got.result == "ok" else _refusal(got, said)
        case "letters":
            rows = _names(got, which, book)
            return said if which == "view" and not rows and not said else rows  # storage tells none from empty
        case "fold":
            return folds.told(got.arrays.get(which), said, book)
        case "queries":
            return _queries(got, which, book)
        case "mask":
            return _as_said(got.arrays.get(which), said)
        case "ranges":
            return _ranges(got, said)
        case "rotated":
            rotated = got.arrays.get(which)
            return None if rotated is None else [numbers(row) for row in rotated[0, 0]]
        case "outputs":
            output = got.arrays.get("output")
            return None if output is None else numbers(_elements(heading, output))
        case "count":
            counted = got.values.get("meter", {}).get(heading)
            return said if counted is not None and counted <= said else counted
    return got.values.get(which)


def _refusal(got: Step, said: Any) -> str:
    """A refusal that names no clause counts as a refusal by the right one."""
    return (
        str(said)
        if got.result == "refused" and not got.clause and str(said).startswith("refused")
        else outcome(got)
    )


def _names(got: Step, what: str, book: SerialBook) -> list[int] | str | None:
    keys, values = got.arrays.get(f"{what}.k"), got.arrays.get(f"{what}.v")
    if keys is None and values is None:
        return None
    named = visible.one_name_each(keys, values, book)
    return named[0] if named is not None else "different rows as keys and values, or in different heads"


def _history(got: Step, book: SerialBook) -> list[int] | None:
    """The rows of sequence 0 in a history; what its mask hides from every query may be anything."""
    names = visible.history_names(got, whole_buffer.hidden(got), book) if "history.k" in got.arrays else None
    return names[0] if names else None


def _queries(got: Step, which: str, book: SerialBook) -> list[list[int]] | str:
    """What each query sees: of sequence 1 if the column is about `history.1`, else of sequence 0."""
    _, _, sequence = which.partition(".")
    named = _names(got, which, book) if sequence else _history(got, book)
    mask = got.arrays.get("mask")
    if not isinstance(named, list):
        return "no history"
    count = 1 if mask is None else mask.shape[2]
    seen = [visible.seen(named, mask, (int(sequence or 0), 0), q) for q in range(count)]
    return [sorted(s for s, _ in q) if q is not None else [] for q in seen]


def _as_said(mask: Array | None, said: Any) -> Any:
    """The mask as JSON parts, the way the table has it."""
    return None if mask is None else masks.to_json((masks.Explicit(mask),))


def _ranges(got: Step, said: list[Any]) -> list[tuple[int, int] | None]:
    names = ("snapshot",) if len(said) == 1 else ("parent", "child")
    values = [got.values.get(n) for n in names]
    return [None if v is None else (v[0], v[1]) for v in values]


def _of_stops(heading: str, level: str, example: Example) -> bool:
    """Whether of ranges only the stops are compared: where a ring's snapshot starts follows from its storage."""
    return (
        level == "visible" and columns.column(heading).reads == "ranges" and "window" in needed(example.trace.kind)
    )


def _stops(ranges: list[tuple[int, int] | None]) -> list[int | None]:
    return [None if each is None else each[1] for each in ranges]


def _show(value: Any, reads: str) -> str:
    if isinstance(value, list) and all(isinstance(x, int) for x in value):
        return " ".join(letters(x) if reads in ("letters", "fold") else str(x) for x in value) or "empty"
    if isinstance(value, list) and value and isinstance(value[0], str):
        return ", ".join(value)
    if isinstance(value, list) and value and isinstance(value[0], list):
        return ", ".join(" ".join(x if isinstance(x, str) else letters(x) for x in q) or "-" for q in value)
    return "none" if value is None else str(value)
