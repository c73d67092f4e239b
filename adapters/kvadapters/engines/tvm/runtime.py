"""Apache TVM: the functions of its virtual machine."""

from __future__ import annotations

from typing import Any

from kvspec.errors import CannotRun
from kvspec.geometry import Array

try:
    import tvm
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
