"""torch, on a GPU if it has one: slice assignment or `index_copy_`, and scaled_dot_product_attention.

Attention has two forms. One folds the heads of a group into queries, so that they all read a key together; the
other is `enable_gqa`. On a GPU it has each by every backend of SDPA, and as torch chooses. On a CPU it has a third
form, two products of matrices, since oneDNN makes these of bf16. The fastest one is measured. Queries are in the
dtype of the rows, and masks are there, before the clock runs.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from kvprofile.peers.array_work import WORK, ArrayPeer
from kvprofile.peers.host_arrays import given
from kvspec.forms import FLOATS, Form
from kvspec.geometry import DTYPES, Array

POSITIONED = ("append", "ring append", "store append", "batch step", "captured step")
"""Operations that write rows at positions and cast none."""


class Tensors:
    """torch as a library of arrays; `folded` is the form of its attention."""

    def __init__(self, folded: bool = False) -> None:
        self.form = "folded" if folded else "enable_gqa"
        self._folded, self._masks = folded, dict[tuple[int, ...], Any]()
        os.environ.setdefault(
            "OMP_WAIT_POLICY", "PASSIVE"
        )  # threads that wait by spinning keep others from their turn
        self.torch: Any = importlib.import_module("torch")
        self.device = "cuda" if self.torch.cuda.is_available() else "cpu"

    def wrap(self, array: Array) -> Any:
        """Make a tensor of the same bits: torch takes no bf16 from numpy."""
        bits = self.torch.from_numpy(np.ascontiguousarray(array).view(np.dtype(f"i{array.dtype.itemsize}")))
        return bits.view(getattr(self.torch, array.dtype.name)).to(self.device)

    def queries(self, array: Array, dtype: str) -> Any:
        """Make a tensor in the dtype of the rows."""
        return self.wrap(array.astype(DTYPES[dtype]))

    def host(self, array: Any) -> Array:
        """Copy to the host in f32, which holds every element."""
        found: Array = array.float().cpu().numpy()
        return found

    def copy(self, array: Any) -> Any:
        """Copy into new memory."""
        return array.clone()

    def landed(self, array: Any) -> Any:
        """Copy to the host from a GPU."""
        return array.cpu()

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
        """Attend by SDPA."""
        attention, (heads, n) = self.torch.nn.functional.scaled_dot_product_attention, queries.shape[1:3]
        group = heads // keys.shape[1]
        mask = None if n == 1 and seen is None else self._mask(n, keys.shape[2], seen or keys.shape[2], group)
        if not self._folded:
            return attention(queries, keys, values, attn_mask=mask, enable_gqa=group > 1)
        asked = queries.reshape(len(queries), keys.shape[1], group * n, -1)
        return attention(asked, keys, values, attn_mask=mask).reshape(*queries.shape[:3], -1)

    def encoded(self, form: Form, rows: Any) -> tuple[Any, ...]:
        """Divide by the largest of each group, or by the scale that is given, in f32, and round."""
        wide, codes = rows.float(), getattr(self.torch, form.of.dtype.name)
        if form.given:
            return ((wide / self.wrap(given(form, rows.shape[1]))).to(codes),)
        groups = wide.unflatten(-1, (-1, form.group or rows.shape[-1]))
        scales = groups.abs().amax(-1) / form.of.top
        whole = groups / scales.clamp(min=float(np.finfo(np.float32).tiny))[..., None]
        whole = whole if form.codes in FLOATS else whole.round()
        return whole.to(codes).flatten(-2), scales.to(getattr(self.torch, form.of.scale.name))

    def decoded(self, form: Form, kept: tuple[Any, ...], dtype: str) -> Any:
        """Multiply by the scales, in the dtype of the rows: SDPA takes no other beside queries of that dtype."""
        rows = kept[0].to(getattr(self.torch, DTYPES[dtype].name))
        scales = self.wrap(given(form, rows.shape[1])) if form.given else kept[1]
        rows.unflatten(-1, (-1, form.group or rows.shape[-1])).mul_(scales.to(rows.dtype)[..., None])
        return rows

    def _mask(self, n: int, rows: int, seen: int, group: int) -> Any:
        """Give which rows each query sees, the queries of a folded group one behind the other; made once."""
        key = n, rows, seen, group if self._folded else 1
        if key not in self._masks:
            mask = self.torch.ones(n, rows, dtype=self.torch.bool, device=self.device).tril(seen - n)
            self._masks[key] = mask.repeat(key[3], 1)
        return self._masks[key]


class Products(Tensors):
    """torch with attention by two products of matrices and a softmax between them, the heads of a group folded. On
    a CPU that has instructions for bf16, oneDNN multiplies such matrices."""

    def __init__(self) -> None:
        super().__init__(folded=True)
        self.form = "products of matrices"

    def attend(self, queries: Any, keys: Any, values: Any, seen: int | None = None) -> Any:
        """Attend. Scores and weights are in the dtype of the rows where they are multiplied."""
        n, rows = queries.shape[2], keys.shape[2]
        asked = queries.reshape(len(queries), keys.shape[1], -1, queries.shape[3])
        scores = self.torch.matmul(asked, keys.transpose(2, 3)).float().mul_(queries.shape[3] ** -0.5)
        if n > 1 or seen is not None:
            ahead = self._mask(n, rows, seen or rows, asked.shape[2] // n).logical_not()
            scores.masked_fill_(ahead, float("-inf"))
        weights = scores.softmax(-1).to(values.dtype)
        return self.torch.matmul(weights, values).reshape(*queries.shape[:3], -1)


BACKENDS = {"flash": "flash", "efficient": "mem_efficient", "cudnn": "cudnn", "math": "math"}
"""The backends of SDPA, as torch's functions that enable them are named."""


class Backend(Tensors):
    """torch with one backend of SDPA; with the one that torch chooses if the name is empty."""

    enabled = ""
    """The backend that is enabled now, in the whole process."""

    def __init__(self, name: str = "", folded: bool = False) -> None:
        super().__init__(folded)
        self.backend, self.form = name, f"{name or 'any backend'}, {self.form}"

    def attend(self, queries: Any, keys: Any, values: Any, seen: int | None = None) -> Any:
        """Attend by SDPA. Raises RuntimeError if the backend cannot."""
        if Backend.enabled != self.backend:
            self.enable()
        return super().attend(queries, keys, values, seen)

    def enable(self) -> None:
        """Enable this backend alone, from here on: torch's context manager takes longer than a launch."""
        for name, function in BACKENDS.items():
            getattr(self.torch.backends.cuda, f"enable_{function}_sdp")(self.backend in ("", name))
        Backend.enabled = self.backend

    def _mask(self, n: int, rows: int, seen: int, group: int) -> Any:
        """Say that the queries are the last ones, where a kernel knows that; cuDNN takes a mask."""
        if seen < rows or self.backend == "cudnn" or (self._folded and group > 1):
            return super()._mask(n, rows, seen, group)
        key = n, rows
        if key not in self._masks:
            self._masks[key] = importlib.import_module("torch.nn.attention.bias").causal_lower_right(n, rows)
        return self._masks[key]


def every_form() -> list[Tensors]:
    """Make every form of attention on this device."""
    if Tensors().device == "cpu":
        return [Tensors(folded=True), Tensors(), Products()]
    return [Backend(name, folded) for name in ("flash", "cudnn", "efficient", "") for folded in (True, False)]


class Positions(Tensors):
    """torch with writes by `index_copy_`, as static caches do."""

    def write(self, target: Any, axis: int, at: int, source: Any) -> None:
        """Write by index_copy_, with positions made for each call."""
        positions = self.torch.arange(at, at + source.shape[axis], device=self.device)
        target.index_copy_(axis, positions, source)


class Torch(ArrayPeer):
    """The peer with slice assignment and SDPA."""

    name = "torch"

    def __init__(self, *libraries: Tensors) -> None:
        libraries = libraries or tuple(every_form())
        super().__init__(*libraries)
        self.tensors = libraries[0]
        self.on_gpu = self.tensors.device == "cuda"
        torch, device = self.tensors.torch, self.tensors.device
        threads = f", {torch.get_num_threads()} threads that do not spin" if device == "cpu" else ""
        self.words = f"torch {torch.__version__} on {device}{threads}: {self.ways}"

    ways = (
        "slices assigned, pages by index_select; scaled_dot_product_attention in the rows' dtype, the heads of a "
        "group folded into queries or with enable_gqa, on a GPU by each backend, on a CPU also by products of "
        "matrices, whichever is fastest; over rows in a form when it has decoded them"
    )

    @property
    def stream(self) -> int | None:
        """Give the handle of the stream that torch computes on; None without a GPU."""
        cuda = self.tensors.torch.cuda
        return int(cuda.current_stream().cuda_stream) if self.tensors.device == "cuda" else None

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
