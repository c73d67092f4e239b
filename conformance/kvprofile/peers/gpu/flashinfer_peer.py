"""FlashInfer: one sequence in one piece, batches and block tables by its wrappers, planned before the clock runs.

Rows are in its layout HND, `[kv_heads, rows, dim]`, where they lie. It computes f16 and bf16 alone.
"""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from kvprofile.case import Case
from kvprofile.operation import Job
from kvprofile.peers import array_work
from kvprofile.peers.gpu import paged
from kvprofile.peers.host_arrays import Rows
from kvprofile.peers.torch_peer import Tensors, Torch
from kvspec.geometry import Array

WORKSPACE = 128 << 20
"""Bytes for the parts of split sequences, as FlashInfer recommends."""


class Layout(NamedTuple):
    """A batch as FlashInfer wants it, in i32."""

    indptr: Array
    """Where each sequence's pages begin among the indices, and where the last one's end: `[B + 1]`."""
    indices: Array
    """The pages of all sequences."""
    last: Array
    """Rows of the last page of each."""
    sequences: Array
    """The sequence of each new row, `[B * n]`."""
    positions: Array
    """The position of each new row in its sequence."""


def layout(batch: paged.Batch, size: int) -> Layout:
    """Lay out a batch for pages of this many rows."""
    counts = -(-batch.lengths // size)
    pages = [table[:count] for table, count in zip(batch.tables, counts, strict=True)]
    positions = batch.lengths[:, None] - batch.new + np.arange(batch.new)
    sequences = np.repeat(np.arange(len(counts)), batch.new)
    arrays = np.append(0, counts.cumsum()), np.concatenate(pages), (batch.lengths - 1) % size + 1, sequences
    return Layout(*(np.ascontiguousarray(a, np.int32) for a in (*arrays, positions.ravel())))


class Made(NamedTuple):
    """What is ready for a batch: its layout on the device, and wrappers by whether they use tensor cores."""

    layout: Layout
    wrappers: dict[bool, Any]


class Wrapped(Tensors):
    """torch with attention by FlashInfer, on tensor cores or not."""

    def __init__(self, tensor_cores: bool) -> None:
        super().__init__()
        self.form, self.tensor_cores = "tensor cores" if tensor_cores else "CUDA cores", tensor_cores
        self.flashinfer: Any = importlib.import_module("flashinfer")
        self._workspace: Any = None

    def queries(self, array: Array, dtype: str) -> Any:
        """Make queries `[B, heads, n, dim]` whose memory is `[B, n, heads, dim]`."""
        return super().queries(array.swapaxes(1, 2), dtype).transpose(1, 2)

    def attend(self, queries: Any, keys: Any, values: Any, seen: int | None = None) -> Any:
        """Attend to one sequence in one piece."""
        assert len(queries) == 1 and seen is None
        asked = queries[0].transpose(0, 1)
        if len(asked) == 1:
            out = self.flashinfer.single_decode_with_kv_cache(
                asked[0], keys[0], values[0], kv_layout="HND", use_tensor_cores=self.tensor_cores
            )
            return out[None, :, None]
        if not self.tensor_cores:
            raise ValueError("FlashInfer computes several queries on tensor cores")
        out = self.flashinfer.single_prefill_with_kv_cache(asked, keys[0], values[0], causal=True, kv_layout="HND")
        return out.transpose(0, 1)[None]

    def plan(self, batch: paged.Batch, rows: Rows) -> paged.Plan:
        """Plan a batch on tensor cores and without, since forms share their work."""
        size = rows.case.page or paged.PAGE
        host = layout(batch, size)
        wrappers = {cores: self._planned(cores, host, rows, size) for cores in (True, False)}
        return paged.Plan(batch, Made(Layout(*map(self.wrap, host)), wrappers))

    def _planned(self, cores: bool, host: Layout, rows: Rows, size: int) -> Any:
        model, dtype = rows.case.model, getattr(self.torch, DTYPES[rows.case.dtype])
        if self._workspace is None:
            self._workspace = self.torch.zeros(WORKSPACE, dtype=self.torch.uint8, device=self.device)
        wrapper = self.flashinfer.BatchDecodeWithPagedKVCacheWrapper(self._workspace, "HND", use_tensor_cores=cores)
        arrays = [self.torch.from_numpy(array) for array in host[:3]]  # planned on the host
        shape = model.heads, model.kv_heads, model.dim, size
        wrapper.plan(*arrays, *shape, q_data_type=dtype, kv_data_type=dtype)
        return wrapper

    def append_pages(self, pool: tuple[Any, Any], plan: paged.Plan, new: tuple[Any, Any]) -> None:
        """Write keys and values in one launch."""
        made: Made = plan.made
        where, ragged = made.layout, [array.transpose(1, 2).flatten(0, 1) for array in new]
        self.flashinfer.append_paged_kv_cache(
            *(*ragged, where.sequences, where.positions, pool, where.indices, where.indptr, where.last),
            kv_layout="HND",
        )

    def attend_pages(self, queries: Any, pool: tuple[Any, Any], plan: paged.Plan) -> Any:
        """Attend with one query for each sequence."""
        made: Made = plan.made
        return made.wrappers[self.tensor_cores].run(queries[:, :, 0], pool)[:, :, None]


DTYPES = {"f16": "float16", "bf16": "bfloat16"}
"""Its dtypes, as torch names them."""


def _attend(rows: Rows, behind: bool = True) -> Job:
    """One sequence in one piece; a batch in pages that follow each other."""
    case = rows.case
    if case.batch == 1:
        return array_work.attend(rows, behind)
    held = case.context + case.rows if behind else case.context
    return paged.attend_in_order(rows, [held] * case.batch, case.rows)


class FlashInfer(Torch):
    """The peer."""

    name = "flashinfer"
    work = MappingProxyType(
        {
            "attention": _attend,
            "ring attention": lambda rows: _attend(rows, behind=False),
            "captured attention": lambda rows: _attend(rows, behind=False),
            "batch attention": lambda rows: paged.attend_in_order(rows, [rows.case.context] * rows.case.batch),
            "ragged attention": lambda rows: paged.attend_in_order(rows, rows.case.lengths),
            "paged attention": paged.attend,
            "ragged paged attention": paged.attend_ragged,
        }
    )
    ways = "one sequence in one piece by slices, batches and tables by its pages; on tensor cores or not"

    def __init__(self) -> None:
        forms = Wrapped(tensor_cores=True), Wrapped(tensor_cores=False)
        super().__init__(*forms)
        self.words = f"flashinfer {forms[0].flashinfer.__version__}, {self.words}"

    def job(self, case: Case, memory: int) -> Job | None:
        """Give the work of a case; f32, and several queries of a batch or through tables, are not among it."""
        several = case.rows > 1 and (case.batch > 1 or case.page is not None)
        return None if case.dtype not in DTYPES or several else super().job(case, memory)
