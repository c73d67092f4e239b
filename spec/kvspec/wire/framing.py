"""Messages of the wire as bytes: a line of JSON, then raw tensors.

`spec/WIRE.md` tells the protocol to authors of engines.

This module does no input or output: `encode` gives bytes, a `Decoder` takes them as they come.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from operator import index
from typing import Any

import msgspec
import numpy as np

from kvspec.errors import BadInput
from kvspec.geometry import DTYPES, Array
from kvspec.outside import read_json

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


_TO_JSON = json.JSONEncoder(default=index, allow_nan=False, check_circular=False, separators=(",", ":"))
_QUICK = msgspec.json.Decoder()
_TO_JSON_QUICKLY = msgspec.json.Encoder(enc_hook=index)


class ProtocolError(Exception):
    """The peer sent something that is not a message; says what, and where in the stream."""


def encode(
    head: Mapping[str, Any], tensors: Mapping[str, Array | None] | None = None, checked: bool = False
) -> bytes:
    """Encode one message as bytes. `checked`: its header is known to hold texts, truths and whole numbers alone.
    Raises BadInput for what cannot be sent."""
    listed: list[list[Any]] = []
    parts: list[bytes | memoryview] = []
    for name, array in (tensors or {}).items():
        if array is None:
            listed.append([name, None, []])
            continue
        dtype = NAMES.get(array.dtype)
        if dtype is None:
            raise BadInput(f"{name}: dtype {array.dtype} cannot be sent; known: {', '.join(TYPES)}")
        listed.append([name, dtype, array.shape])
        parts.append(array.tobytes() if array.nbytes < LARGE else _bytes_of(array))
    checked = checked or FLAT.issuperset(map(type, head.values()))
    line = (_text_of_checked if checked else _text)({**head, "tensors": listed} if listed else head)
    size = sum(map(len, parts))
    if len(line) >= LARGEST_HEADER or size > LARGEST_TENSORS:
        raise BadInput(f"a header of {len(line)} and tensors of {size} bytes are too much to send")
    return b"".join((line, b"\n", *parts))


LARGE = 1 << 14
"""Bytes of a tensor from which on it is not copied before it is written behind the header."""


def _bytes_of(array: Array) -> memoryview:
    """The bytes of an array, without a copy if they lie in order."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


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
            tensors[name] = None if dtype is None else np.ndarray(shape, dtype, raw)
            at += size
        del self._bytes[:at]
        self._head, self._needed = None, 0
        return head, tensors


def _strictly(line: bytes, largest: int) -> tuple[dict[str, Any], Listed]:
    """Read a header, and check the tensors that it lists. Raises ProtocolError."""
    try:
        head = read_json(line.decode())
    except (ValueError, RecursionError):
        raise ProtocolError(f"not a JSON header: {line[:80]!r}") from None
    if not isinstance(head, dict):
        raise ProtocolError(f"a header must be an object: {line[:80]!r}")
    if line.count(b"[") + line.count(b"{") > DEEPEST and _depth(head) > DEEPEST:
        raise ProtocolError(f"a header nests at most {DEEPEST} deep: {line[:80]!r}")
    return head, _listed(head.pop("tensors", []), largest)


def _quickly(line: bytes, largest: int) -> tuple[dict[str, Any], Listed] | None:
    """The same in a tenth of the time; None for a header that may be wrong, or is written with spaces. This reader
    does not see a key that stands twice in an object. A header that is written again as it was has none."""
    start, behind, tensors = line.rpartition(TENSORS)
    plain = start + b"}" if behind else line
    if len(line) > LONGEST_QUICK or plain.count(b"{") + plain.count(b"[") > DEEPEST:
        return None
    try:
        head = _QUICK.decode(plain)
        listed = _listed_again(tensors, largest) if behind else Listed()
    except (ValueError, RecursionError, msgspec.MsgspecError, ProtocolError):
        return None
    if type(head) is not dict or "tensors" in head or _TO_JSON_QUICKLY.encode(head) != plain:
        return None
    return head, listed


TENSORS = b',"tensors":'
"""What stands before the list of tensors where that comes last. No text has these bytes: its marks are escaped."""

LONGEST_QUICK = 4096
"""Bytes of a header that is read quickly. The lists of tensors in them are remembered, some thousands of them."""


@lru_cache(maxsize=4096)
def _listed_again(tensors: bytes, largest: int) -> Listed:
    """Check the tensors that a header lists last, with the brace that ends it."""
    if not tensors.endswith(b"}"):
        raise ProtocolError(f"not the end of a header: {tensors[-40:]!r}")
    return _listed(_QUICK.decode(tensors[:-1]), largest)


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
