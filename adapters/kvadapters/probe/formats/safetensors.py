"""Writes safetensors files: the length of a header, the header in JSON, then the tensors' bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from kvadapters.probe.arrays import Array

DTYPES = {
    "f32": ("F32", np.dtype(np.float32), "float32"),
    "bf16": ("BF16", np.dtype(ml_dtypes.bfloat16), "bfloat16"),
    "f16": ("F16", np.dtype(np.float16), "float16"),
}
"""A dtype's name here, in safetensors, in numpy, and in config.json."""


def write(path: Path, tensors: Mapping[str, Array], dtype: str, layout: str = "pt") -> str:
    """Write tensors in a dtype, and whose layout they have; give the file's SHA-256."""
    name, numpy_dtype, _ = DTYPES[dtype]
    header: dict[str, Any] = {"__metadata__": {"format": layout}}
    at = 0
    for key, tensor in tensors.items():
        end = at + tensor.size * numpy_dtype.itemsize
        header[key] = {"dtype": name, "shape": list(tensor.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    done = hashlib.sha256()
    with path.open("wb") as file:
        for part in (len(text).to_bytes(8, "little"), text):
            file.write(part)
            done.update(part)
        for tensor in tensors.values():
            data = np.ascontiguousarray(tensor.astype(numpy_dtype)).view(np.uint8).data
            file.write(data)
            done.update(data)
    return done.hexdigest()
