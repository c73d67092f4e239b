"""The wire: how an engine in any language is driven over its standard input and output, one operation a message.

`spec/WIRE.md` tells the protocol to authors of engines; `kvspec/schemas/question.json` and `answer.json` hold the
schemas.

This module does no input or output: `encode` gives bytes, a `Decoder` takes them as they come.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import index
from typing import Any

import msgspec
import numpy as np

from kvspec import masks, strict_json
from kvspec.chapters.record import METERED, Value
from kvspec.errors import BadInput
from kvspec.geometry import DTYPES, Array
from kvspec.operations.table import RUN, Operation
from kvspec.registry import TENSORS, VALUES
from kvspec.session.step import Step

PROTOCOL = 1
LARGEST_HEADER = 1 << 20
LARGEST_TENSORS = 256 << 20
"""Bytes of tensors one message may carry, all together."""
MOST_TENSORS = 4096
LARGEST_NUMBER = 1 << 62
DEEPEST = 32
"""How deep a header may nest."""

TYPES = DTYPES | {"bool": np.dtype(bool)}
NAMES = {t: name for name, t in TYPES.items()}
"""Dtypes that a message may carry, and their names; and the names by the dtypes."""

Tensors = dict[str, Array | None]

Sized = tuple[str, np.dtype[Any] | None, tuple[int, ...], int]
"""A listed tensor: its name, dtype, shape and bytes."""

Listed = tuple[Sized, ...]
"""The tensors of a message."""


_TO_JSON = json.JSONEncoder(default=index, allow_nan=False, check_circular=False)
_QUICK = msgspec.json.Decoder()
_TO_JSON_QUICKLY = msgspec.json.Encoder(enc_hook=index)


class _Listing(msgspec.Struct):
    """The list of tensors in a header, as it is written there."""

    tensors: msgspec.Raw = msgspec.Raw()


_LISTING = msgspec.json.Decoder(_Listing)


class ProtocolError(Exception):
    """The peer sent something that is not a message; says what, and where in the stream."""


def encode(
    head: Mapping[str, Any], tensors: Mapping[str, Array | None] | None = None, checked: bool = False
) -> bytes:
    """Encode one message as bytes. `checked`: its header is known to hold texts, truths and whole numbers alone.
    Raises BadInput for what cannot be sent."""
    listed: list[list[Any]] = []
    parts: list[bytes] = []
    for name, array in (tensors or {}).items():
        if array is None:
            listed.append([name, None, []])
            continue
        dtype = NAMES.get(array.dtype)
        if dtype is None:
            raise BadInput(f"{name}: dtype {array.dtype} cannot be sent; known: {', '.join(TYPES)}")
        listed.append([name, dtype, array.shape])
        parts.append(array.tobytes())
    checked = checked or FLAT.issuperset(map(type, head.values()))
    line = (_text_of_checked if checked else _text)({**head, "tensors": listed} if listed else head)
    size = sum(map(len, parts))
    if len(line) >= LARGEST_HEADER or size > LARGEST_TENSORS:
        raise BadInput(f"a header of {len(line)} and tensors of {size} bytes are too much to send")
    return b"".join((line, b"\n", *parts))


FLAT = frozenset((str, int, bool, type(None)))
"""What the values of a header are that can be written quickly."""


def _text(head: Mapping[str, Any]) -> bytes:
    """The header; numpy's whole numbers are written as numbers, anything else that is not JSON is BadInput."""
    try:
        return _TO_JSON.encode(head).encode()
    except (TypeError, ValueError, RecursionError) as e:
        raise BadInput(f"not JSON: {e}") from None


def _text_of_checked(head: Mapping[str, Any]) -> bytes:
    """The same in a tenth of the time. It writes NaN as null, which is why not every header may be written so."""
    try:
        return _TO_JSON_QUICKLY.encode(head)
    except (TypeError, ValueError, msgspec.MsgspecError):
        return _text(head)  # it also takes a message with half of a pair of surrogates


def _depth(found: Any) -> int:
    """How deep lists and objects nest: 1 for a flat one."""
    depth, layer = 0, [found]
    while layer := [x for x in layer if isinstance(x, list | dict)]:
        depth, layer = depth + 1, [y for x in layer for y in (x.values() if isinstance(x, dict) else x)]
    return depth


class Decoder:
    """Takes bytes as they arrive and gives whole messages; never holds more than the largest allowed message."""

    def __init__(self, largest: int = LARGEST_TENSORS) -> None:
        self._largest = largest
        self._bytes = bytearray()
        self._head: dict[str, Any] | None = None
        self._listed: Listed = ()
        self._needed = 0
        self._searched = 0

    def feed(self, data: bytes) -> Iterator[tuple[dict[str, Any], Tensors]]:
        """Give the messages that these bytes complete. Raises ProtocolError."""
        self._bytes += data
        while self._head is not None or self._read_header():
            if len(self._bytes) < self._needed:
                return
            yield self._message()

    @property
    def busy(self) -> bool:
        """Tell whether the stream is in the middle of a message."""
        return self._head is not None or bool(self._bytes)

    @property
    def waiting(self) -> str:
        """Say where in a message the stream stopped, for errors about an early end."""
        if self._head is not None:
            return f"{len(self._bytes)} of {self._needed} bytes of tensors"
        return f"{len(self._bytes)} bytes of a header" if self._bytes else "no message"

    def _read_header(self) -> bool:
        end = self._bytes.find(b"\n", self._searched, LARGEST_HEADER)
        self._searched = len(self._bytes) if end < 0 else 0
        if end < 0:
            if len(self._bytes) >= LARGEST_HEADER:
                start = bytes(self._bytes[:40])
                raise ProtocolError(f"a header of more than {LARGEST_HEADER} bytes: {start!r}...")
            return False
        line = bytes(self._bytes[:end])
        del self._bytes[: end + 1]
        self._head, self._listed = _quickly(line, self._largest) or _strictly(line, self._largest)
        self._needed = sum(tensor[3] for tensor in self._listed)
        return True

    def _message(self) -> tuple[dict[str, Any], Tensors]:
        assert self._head is not None
        head, tensors, at = self._head, Tensors(), 0
        for name, dtype, shape, size in self._listed:
            raw = self._bytes[at : at + size]  # a copy, so that the array is the receiver's to write on
            tensors[name] = None if dtype is None else np.frombuffer(raw, dtype).reshape(shape)
            at += size
        del self._bytes[:at]
        self._head, self._needed = None, 0
        return head, tensors


def _strictly(line: bytes, largest: int) -> tuple[dict[str, Any], Listed]:
    """Read a header, and check the tensors that it lists. Raises ProtocolError."""
    try:
        head = strict_json.loads(line.decode())
    except (ValueError, RecursionError):
        raise ProtocolError(f"not a JSON header: {line[:80]!r}") from None
    if not isinstance(head, dict):
        raise ProtocolError(f"a header must be an object: {line[:80]!r}")
    if line.count(b"[") + line.count(b"{") > DEEPEST and _depth(head) > DEEPEST:
        raise ProtocolError(f"a header nests at most {DEEPEST} deep: {line[:80]!r}")
    return head, _listed(head.pop("tensors", []), largest)


def _quickly(line: bytes, largest: int) -> tuple[dict[str, Any], Listed] | None:
    """The same in a fifth of the time; None for a header that may be wrong. What reads it does not see a key that
    stands twice in an object: there is none if the header has no more colons than keys."""
    try:
        head, tensors, listed = _QUICK.decode(line), b"", Listed()
        if type(head) is dict and head.pop("tensors", listed) is not listed:
            tensors = bytes(_LISTING.decode(line).tensors)
            listed = _listed_again(tensors, largest)
    except (ValueError, RecursionError, msgspec.MsgspecError, ProtocolError):
        return None
    if type(head) is not dict:
        return None
    deep = line.count(b"{") + line.count(b"[") - tensors.count(b"[") > DEEPEST
    once = line.count(b":") == _keys(head) + bool(tensors)
    return (head, listed) if once and not deep and len(line) < LONGEST_QUICK else None


LONGEST_QUICK = 4096
"""Bytes of a header that is read quickly. The lists of tensors in them are remembered, some thousands of them."""


def _keys(found: dict[str, Any]) -> int:
    """Count the keys of an object and of the objects in it, but those in lists."""
    count = len(found)
    for value in found.values():
        if type(value) is dict:
            count += _keys(value)
    return count


@lru_cache(maxsize=4096)
def _listed_again(tensors: bytes, largest: int) -> Listed:
    return _listed(_QUICK.decode(tensors), largest)


def _listed(listed: Any, largest: int) -> Listed:
    """Check the tensors that a header lists."""
    if not isinstance(listed, list) or len(listed) > MOST_TENSORS:
        raise ProtocolError(f"tensors must be a list of at most {MOST_TENSORS}: {listed!r:.80}")
    sized = tuple(_sized(entry, largest) for entry in listed)
    if len({tensor[0] for tensor in sized}) < len(listed):
        raise ProtocolError(f"a tensor is listed twice: {listed!r:.80}")
    needed = sum(tensor[3] for tensor in sized)
    if needed > largest:
        raise ProtocolError(f"tensors of {needed} bytes; a message carries at most {largest}")
    return sized


def _sized(entry: Any, largest: int) -> Sized:
    """Check one listed tensor; give its name, dtype, shape and bytes."""
    if not isinstance(entry, list) or len(entry) != 3 or not isinstance(entry[0], str):
        raise ProtocolError(f"a tensor is listed as [name, dtype, shape], not {entry!r:.80}")
    name, dtype, shape = entry
    if dtype is None:
        return name, None, (), 0
    if not isinstance(dtype, str) or dtype not in TYPES:
        raise ProtocolError(f"{name!r:.40}: unknown dtype {dtype!r:.40}; known: {', '.join(TYPES)}")
    if not isinstance(shape, list) or len(shape) > 8 or set(map(type, shape)) - {int} or min(shape, default=0) < 0:
        raise ProtocolError(f"{name!r:.40}: a shape is a list of at most 8 sizes, not {shape!r:.80}")
    type_, size = TYPES[dtype], math.prod(shape)
    # A size of 0 does not excuse the others: numpy refuses shapes whose other sizes overflow.
    if (size or math.prod(filter(None, shape))) * type_.itemsize > largest:
        raise ProtocolError(
            f"{name!r:.40}: {dtype} {shape!r:.80} is more than the {largest} bytes a message carries"
        )
    return name, type_, tuple(shape), size * type_.itemsize


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
    """Make one message of operations that are done in a row, `times` times the same ones: their headers, and their
    tensors, those of all times stacked and named by the number of the operation, as `0.keys`. Where an operation
    takes other shapes from time to time, the message says each operation once."""
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
"""What an answer may hold beside its values: results; tensors that stand alone, and such as have keys and values.
After the name, where it says so in `Step`, a dot and which."""

WHICH = r"(\.[A-Z]|(\.[0-9]{1,4}){1,2})?"
TENSOR = rf"{'|'.join(ALONE)}|({'|'.join(ARRAYS)}){WHICH}\.[kv]"
"""Patterns: which of several is observed; the names that tensors of an answer may have."""

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
