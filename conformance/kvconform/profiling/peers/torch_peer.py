"""torch: slice assignment or `index_copy_`, and scaled_dot_product_attention; on a GPU if torch has one."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from kvconform.profiling.peers.array_work import WORK, ArrayPeer
from kvspec.geometry import Array

POSITIONED = ("append", "ring append", "store append", "batch step", "captured step")
"""Operations that write rows at positions and cast none."""


class Tensors:
    """torch as a library of arrays."""

    def __init__(self) -> None:
        os.environ.setdefault(
            "OMP_WAIT_POLICY", "PASSIVE"
        )  # threads that wait by spinning keep others from their turn
        self.torch: Any = importlib.import_module("torch")
        self.device = "cuda" if self.torch.cuda.is_available() else "cpu"

    def wrap(self, array: Array) -> Any:
        """Make a tensor of the same bits: torch takes no bf16 from numpy."""
        bits = self.torch.from_numpy(np.ascontiguousarray(array).view(np.dtype(f"i{array.dtype.itemsize}")))
        return bits.view(getattr(self.torch, array.dtype.name)).to(self.device)

    def copy(self, array: Any) -> Any:
        """Copy into new memory."""
        return array.clone()

    def cat(self, arrays: Sequence[Any], axis: int) -> Any:
        """Join tensors in new memory."""
        return self.torch.cat(tuple(arrays), axis)

    def write(self, target: Any, axis: int, at: int, source: Any) -> None:
        """Assign a slice."""
        target.narrow(axis, at, source.shape[axis]).copy_(source)

    def take(self, array: Any, entries: Any) -> Any:
        """Take entries by index_select."""
        return self.torch.index_select(array, 0, entries)

    def attend(self, queries: Any, keys: Any, values: Any, seen: int | None = None) -> Any:
        """Attend by SDPA with grouped heads, queries in the dtype of the rows."""
        n, rows = queries.shape[2], keys.shape[2]
        mask = None
        if n > 1 or seen is not None:
            mask = self.torch.ones(n, rows, dtype=self.torch.bool, device=self.device).tril((seen or rows) - n)
        attention = self.torch.nn.functional.scaled_dot_product_attention
        return attention(queries.to(keys.dtype), keys, values, attn_mask=mask, enable_gqa=True)


class Positions(Tensors):
    """torch with writes by `index_copy_`, as static caches do."""

    def write(self, target: Any, axis: int, at: int, source: Any) -> None:
        """Write by index_copy_, with positions made for each call."""
        positions = self.torch.arange(at, at + source.shape[axis], device=self.device)
        target.index_copy_(axis, positions, source)


class Torch(ArrayPeer):
    """The peer with slice assignment and SDPA."""

    name = "torch"

    def __init__(self, library: Tensors | None = None) -> None:
        self.tensors = Tensors() if library is None else library
        super().__init__(self.tensors)
        torch, device = self.tensors.torch, self.tensors.device
        threads = f", {torch.get_num_threads()} threads that do not spin" if device == "cpu" else ""
        self.words = f"torch {torch.__version__} on {device}{threads}: {self.ways}"

    ways = (
        "slices assigned, pages by index_select; scaled_dot_product_attention with enable_gqa, in the rows' dtype"
    )

    def wait(self) -> None:
        """Wait for the GPU, if there is one."""
        if self.tensors.device == "cuda":
            self.tensors.torch.cuda.synchronize()


class IndexCopy(Torch):
    """The peer with index_copy_, for the `POSITIONED` operations alone."""

    name = "index_copy_"
    ways = "index_copy_ with positions made for each call"
    work = MappingProxyType({name: WORK[name] for name in POSITIONED})

    def __init__(self) -> None:
        super().__init__(Positions())

    def job(self, case: Any, memory: int) -> Any:
        """Give the work of a case; appending a chunk to a ring does not write at positions."""
        return None if case.operation == "ring append" and case.rows > 1 else super().job(case, memory)
