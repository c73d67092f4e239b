"""The safetensors format: 8 bytes of length, a JSON header that says where each tensor lies, the bytes of all.

Written here because it is a page long, and its own package knows no bfloat16 in numpy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from kvspec.errors import BadInput
from kvspec.geometry import DTYPES, Array
from kvspec.outside import read_json

NAMES = {"F32": DTYPES["f32"], "F16": DTYPES["f16"], "BF16": DTYPES["bf16"], "BOOL": np.dtype(bool)}
"""The format's names of the dtypes there are here."""

_OF = {dtype: name for name, dtype in NAMES.items()}


def dumps(tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> bytes:
    """A file of these tensors, little-endian, in C order."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    at = 0
    for name, array in tensors.items():
        header[name] = {"dtype": _OF[array.dtype], "shape": array.shape, "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(a.tobytes() for a in tensors.values())


def loads(data: bytes, where: str) -> dict[str, Array]:
    """The tensors of a file. Raises BadInput that says what is wrong with it."""
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > len(data) - 8:
        raise BadInput(
            f"{where}: not a safetensors file: {len(data)} bytes, too few for its header; was it cut off?"
        )
    try:
        header = dict(read_json(data[8 : 8 + size]))
    except (ValueError, TypeError) as e:
        raise BadInput(f"{where}: not a safetensors file: its header is no JSON object ({e})") from None
    body = data[8 + size :]
    return {
        name: _read(body, entry, f"{where}: {name}") for name, entry in header.items() if name != "__metadata__"
    }


def _read(body: bytes, entry: Any, where: str) -> Array:
    try:
        dtype, shape, (begin, end) = NAMES[entry["dtype"]], list(map(int, entry["shape"])), entry["data_offsets"]
        fits = 0 <= begin <= end and end - begin == prod(shape) * dtype.itemsize
    except (KeyError, TypeError, ValueError):
        raise BadInput(f"{where}: not an entry of a safetensors header: {entry!r:.80}") from None
    if not fits or end > len(body):
        said = f"bytes {begin} to {end} of {len(body)}"
        raise BadInput(f"{where}: {said} do not hold {entry['dtype']}{shape}; was the file cut off?")
    return np.frombuffer(body[begin:end], dtype).reshape(shape)
