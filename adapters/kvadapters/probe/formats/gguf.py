"""Writes GGUF files: a header of keys and values, the tensors' names and shapes, then their bytes, at multiples of
32. Shapes are written with the innermost dimension first."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import ml_dtypes
import numpy as np

from kvadapters.probe.arrays import Array

Value = str | bool | int | float | Sequence[str] | Sequence[float] | Sequence[bool]
"""A value of the header. Whole numbers are written as u32, others as f32, several texts or others as an array."""

DTYPES = {
    "f32": (0, np.dtype(np.float32), 0),
    "f16": (1, np.dtype(np.float16), 1),
    "bf16": (30, np.dtype(ml_dtypes.bfloat16), 32),
}
"""A dtype's number in GGUF, in numpy, and as the type of a whole file. Vectors and biases are always f32."""

ALIGNMENT = 32


def write(path: Path, values: Mapping[str, Value], tensors: Mapping[str, Array], dtype: str) -> str:
    """Write keys and values, and tensors whose matrices have a dtype; give the file's SHA-256."""
    values = {**values, "general.file_type": DTYPES[dtype][2], "general.alignment": ALIGNMENT}
    done = hashlib.sha256()
    with path.open("wb") as file:
        for part in _parts(values, tensors, dtype):
            file.write(part)
            done.update(part)
    return done.hexdigest()


def _parts(values: Mapping[str, Value], tensors: Mapping[str, Array], dtype: str) -> Iterator[bytes]:
    typed = {name: _typed(tensor, "f32" if name.endswith(".bias") else dtype) for name, tensor in tensors.items()}
    head = b"GGUF" + struct.pack("<IQQ", 3, len(typed), len(values))
    head += b"".join(_text(key) + _value(value) for key, value in values.items())
    at = 0
    for name, (number, tensor) in typed.items():
        shape = tensor.shape[::-1]
        head += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, number, at)
        at += tensor.nbytes + -tensor.nbytes % ALIGNMENT
    yield head + bytes(-len(head) % ALIGNMENT)
    for _, tensor in typed.values():
        yield np.ascontiguousarray(tensor).tobytes() + bytes(-tensor.nbytes % ALIGNMENT)


def _typed(tensor: Array, dtype: str) -> tuple[int, Array]:
    number, numpy_dtype, _ = DTYPES["f32" if tensor.ndim == 1 else dtype]
    return number, tensor.astype(numpy_dtype)


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value: Value) -> bytes:
    """Write a value behind the number of its type."""
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    parts = [_value(each) for each in value]
    return (
        struct.pack("<I", 9) + parts[0][:4] + struct.pack("<Q", len(parts)) + b"".join(part[4:] for part in parts)
    )
