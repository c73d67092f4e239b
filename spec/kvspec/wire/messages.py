"""What is asked over the wire, masks among tensors and operations in a row; and what is answered, a step.

`kvspec/schemas/question.json` and `kvspec/schemas/answer.json` hold the schemas.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from kvspec import masks
from kvspec.chapters.record import METERED, Value
from kvspec.errors import BadInput
from kvspec.geometry import Array
from kvspec.operations.table import RUN, Operation
from kvspec.registry import TENSORS, VALUES
from kvspec.session.step import Step
from kvspec.wire.framing import LARGEST_NUMBER, ProtocolError, Tensors, encode


def with_mask(op: Operation, logical: masks.Logical, name: str = "parts") -> tuple[Operation, Tensors]:
    """Move the explicit arrays of an operation's mask (`parts` of mask, `through` of attend) into tensors."""
    parts, tensors = masks.to_json(tuple(p for p in logical if not isinstance(p, masks.Explicit))), Tensors()
    for p in logical:
        if isinstance(p, masks.Explicit):
            tensor = f"mask{len(tensors)}"
            tensors[tensor] = p.array
            parts.append({"tensor": tensor})
    return {**op, name: parts}, tensors


def without_tensors(parts: Any, tensors: Tensors) -> masks.Logical:
    """Read the logical mask of a message: undo `with_mask`. Raises BadInput."""
    if not isinstance(parts, list):
        raise BadInput(f"mask: parts must be a list, not {parts!r:.60}")
    named = [p for p in parts if isinstance(p, dict) and set(p) == {"tensor"}]
    logical = masks.from_json([p for p in parts if p not in named])
    return logical + tuple(masks.Explicit(_named(p["tensor"], tensors)) for p in named)


def _named(name: Any, tensors: Tensors) -> Array:
    array = tensors.get(name) if isinstance(name, str) else None
    if array is None:
        raise BadInput(f"mask: no tensor {name!r:.40} came with the message")
    return array


Asked = tuple[Operation, Tensors]
"""The header and the tensors of one operation."""


def run(times: int, asked: Sequence[Asked]) -> Asked:
    """Make one message of operations that are done in a row, `times` times the same ones. It has their headers and
    their tensors. The tensors of all times are stacked, and named by the number of the operation, as `0.keys`.
    Where an operation takes other shapes from time to time, the message says each operation once."""
    length = len(asked) // times
    columns = [asked[i::length] for i in range(length)]
    if not all(map(_same_shapes, columns)):
        return run(1, asked)
    tensors: Tensors = {
        f"{i}.{name}": np.stack([array for _, each in column if (array := each[name]) is not None])
        for i, column in enumerate(columns)
        for name in column[0][1]
    }
    return {"op": RUN.name, "times": times, "ops": [column[0][0] for column in columns]}, tensors


def _same_shapes(column: Sequence[Asked]) -> bool:
    """Tell whether an operation has the same header and takes arrays of one shape and dtype each time."""
    shapes = [{name: a is not None and (a.shape, a.dtype) for name, a in tensors.items()} for _, tensors in column]
    return all(head == column[0][0] for head, _ in column) and all(each == shapes[0] for each in shapes)


def parts(head: Mapping[str, Any], tensors: Tensors) -> Iterator[Asked]:
    """Give the operations of a run one by one, as often as they are done: undo `run`. Raises BadInput."""
    times, ops = head.get("times"), head.get("ops")
    if type(times) is not int or times < 1 or not isinstance(ops, list) or not ops:
        raise BadInput(f"a run has times, 1 or more, and ops, not {times!r:.20} and {ops!r:.40}")
    own: list[Tensors] = [{} for _ in ops]
    for name, array in tensors.items():
        number, _, what = name.partition(".")
        if not number.isdecimal() or int(number) >= len(ops) or array is None or len(array) != times:
            raise BadInput(f"a run of {len(ops)} operations, {times} times, has no use for tensor {name!r:.40}")
        own[int(number)][what] = array
    for time in range(times):
        for op, stacked in zip(ops, own, strict=True):
            yield dict(op), {name: array[time] for name, array in stacked.items() if array is not None}


def answer(question: int, step: Step) -> bytes:
    """Encode a step as an answer. Raises BadInput for anything an answer may not hold."""
    wrong = _wrong_observation(step.values, step.arrays)
    if wrong:
        raise BadInput(wrong)
    head: dict[str, Any] = {"id": question, "result": step.result, "values": step.values}
    if step.result != "ok":
        head |= {"clause": step.clause[:LONGEST_CLAUSE], "message": step.message[:LONGEST_MESSAGE]}
    return encode(head, step.arrays, checked=True)


ANSWER = {"id", "result", "clause", "message", "values"}
"""The fields of an answer."""

RESULTS = ("ok", "refused", "unsupported", "error", "absent")
ALONE = tuple(name for name, tensor in TENSORS.items() if not tensor.pair)
ARRAYS = tuple(name for name, tensor in TENSORS.items() if tensor.pair)
"""What an answer may hold beside its values: results, tensors that stand alone, and tensors that have keys and
values. Where `Step` says so, a dot and which one follow the name."""

LAYER = r"\.[0-9]{1,4}"
WHICH = r"(\.[A-Z]|(\.[0-9]{1,4}){1,2})?"
_ALONE = "|".join(f"{name}{LAYER * tensor.numbered}" for name, tensor in TENSORS.items() if not tensor.pair)
TENSOR = rf"{_ALONE}|({'|'.join(ARRAYS)}){WHICH}\.[kv]"
"""Patterns of which layer is observed, of which one of several, and of the names that tensors of an answer may
have."""

COUNTS = set(METERED)

_TENSOR = re.compile(TENSOR)
_VALUE = re.compile(rf"([a-z]+){WHICH}")

LONGEST_CLAUSE, LONGEST_MESSAGE = 40, 4000


def step(head: Mapping[str, Any], tensors: Tensors) -> Step:
    """Read an answer as a step. Raises ProtocolError for anything that the protocol does not name."""
    if unknown := head.keys() - ANSWER:
        raise ProtocolError(f"unknown field {min(unknown)!r:.40} in an answer")
    if head.get("result") not in RESULTS:
        raise ProtocolError(f"result must be one of {', '.join(RESULTS)}, is {head.get('result')!r:.40}")
    values = head.get("values", {})
    if not isinstance(values, dict):
        raise ProtocolError(f"values must be an object, is {values!r:.40}")
    wrong = _wrong_observation(values, tensors)
    if wrong:
        raise ProtocolError(wrong)
    clause, message = text(head, "clause", LONGEST_CLAUSE), text(head, "message", LONGEST_MESSAGE)
    return Step(head["result"], clause, message, values, tensors)


def text(head: Mapping[str, Any], name: str, limit: int) -> str:
    """Read a text of a header, cut to the limit and made printable (no lone surrogates). Raises ProtocolError."""
    found = head.get(name, "")
    if not isinstance(found, str):
        raise ProtocolError(f"{name} must be a text of at most {limit} characters")
    cut = found[:limit]
    return cut if cut.isascii() else cut.encode(errors="replace").decode()


def _wrong_observation(values: Mapping[str, Any], tensors: Tensors) -> str:
    """Say what is wrong with the values or the tensor names; empty if nothing is."""
    for name, value in values.items():
        record, right = _value_of(name)
        if record is None:
            return f"unknown value {name!r:.40}"
        if not right(value, record):
            return f"{name} must be {_wanted(record)}, is {value!r:.40}"
    return _unknown_tensor(tuple(tensors))


@lru_cache(maxsize=1024)
def _unknown_tensor(names: tuple[str, ...]) -> str:
    """Name the first tensor that no answer may have; empty if there is none."""
    unknown = next((name for name in names if _TENSOR.fullmatch(name) is None), None)
    known = f"known: {', '.join(ALONE)}; {', '.join(ARRAYS)}, with .k or .v"
    return "" if unknown is None else f"unknown tensor {unknown!r:.40}; {known}"


def _number(value: Any, record: Value | None = None) -> bool:
    whole = type(value) is int or isinstance(value, np.integer)
    return whole and -LARGEST_NUMBER <= value <= LARGEST_NUMBER


def _counts(value: Any, record: Value) -> bool:
    return isinstance(value, dict) and value.keys() <= COUNTS and _all_numbers(value.values())


def _numbers(value: Any, record: Value) -> bool:
    if value is None:
        return True
    return isinstance(value, list) and len(value) == (record.count or len(value)) and _all_numbers(value)


def _all_numbers(values: Collection[Any]) -> bool:
    if values and {*map(type, values)} == {int}:
        return bool(min(values) >= -LARGEST_NUMBER and max(values) <= LARGEST_NUMBER)
    return all(map(_number, values))


RIGHT: dict[str, Callable[[Any, Value], bool]] = {
    "number": lambda value, record: value is None or _number(value),
    "truth": lambda value, record: type(value) is bool,
    "text": lambda value, record: isinstance(value, str) and len(value) <= LONGEST_CLAUSE,
    "counts": _counts,
    "numbers": _numbers,
}
"""Whether a value is right, by what such a value holds."""


@lru_cache(maxsize=1024)
def _value_of(name: Any) -> tuple[Value | None, Callable[[Any, Value], bool]]:
    """Give the record of a value by its name, of offset for `offset.B`, and what tells whether one is right; no
    record if there is no such value."""
    found = _VALUE.fullmatch(name) if isinstance(name, str) else None
    record = VALUES.get(found[1]) if found else None
    return record, RIGHT[record.holds if record else "number"]


def _wanted(record: Value) -> str:
    return (
        record.form
        or {
            "truth": "true or false",
            "text": "a text",
            "counts": f"counts by name ({', '.join(METERED)})",
            "numbers": "a list of whole numbers or null",
            "number": "a whole number or null",
        }[record.holds]
    )
