"""Apache TVM: the functions of its virtual machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kvspec.errors import CannotRun
from kvspec.geometry import Array

try:
    import tvm
    from tvm_ffi import Shape
except ImportError as e:
    raise CannotRun(f"TVM cannot be imported ({e}); pip install 'kvconform[tvm]'") from e

FLOATS = {"f32": "float32", "f16": "float16"}
"""The dtypes for which LLVM builds the kernels of a cache."""


def tensor(array: Array) -> Any:
    """An array of TVM."""
    return tvm.runtime.tensor(array)


def call(name: str) -> Any:
    """A function of the runtime."""
    return tvm.get_global_func(f"vm.builtin.{name}")


def forward(cache: Any, sequences: Sequence[int], keys: Array, values: Array) -> None:
    """Do a forward pass of these sequences, with equally many rows of each: `[layers, rows, kv_heads, dim]`."""
    n, heads, dim = keys.shape[1:]
    call("kv_state_begin_forward")(cache, Shape(sequences), Shape([n // len(sequences)] * len(sequences)))
    out = tensor(np.zeros((n, heads, dim), keys.dtype))
    for layer, rows in enumerate(zip(np.zeros_like(keys), keys, values, strict=True)):
        fused = tensor(np.concatenate(rows, 1))
        call("attention_kv_cache_attention_with_fused_qkv")(cache, layer, 1.0, fused, out)
    call("kv_state_end_forward")(cache)
