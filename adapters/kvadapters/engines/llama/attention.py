"""What attention of llama.cpp reads and applies in one layer, seen through the callback that follows an evaluation.

Tensors are asked for by ggml's functions and known by the names that llama.cpp gives them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import llama_cpp as llama
import numpy as np
from llama_cpp._ggml import libggml

from kvspec.geometry import Array


def _function(name: str, result: Any, *more: Any) -> Any:
    function = getattr(libggml, name)
    function.restype, function.argtypes = result, (ctypes.c_void_p, *more)
    return function


_name = _function("ggml_get_name", ctypes.c_char_p)
_elements = _function("ggml_nelements", ctypes.c_int64)
_rows = _function("ggml_nrows", ctypes.c_int64)
_bytes = _function("ggml_nbytes", ctypes.c_size_t)
_get = _function("ggml_backend_tensor_get", None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)


class Block(NamedTuple):
    """What L queries of one evaluation read: n cells `[B, H, n, dim]` of each buffer, weights `[B, H, L, n]`."""

    keys: Array
    values: Array
    weights: Array


class Attention:
    """One layer's blocks of the evaluations since the last `clear`. `callback` is for the context's parameters."""

    def __init__(self, layer: int, batch: int, heads: int, width: int, dtype: Any) -> None:
        self.batch, self.heads, self.width, self.dtype = batch, heads, width, np.dtype(dtype)
        self.names: dict[str, Callable[[int], None]] = {
            f"cache_v_l{layer} (reshaped)": self._measure,
            f"cache_k_l{layer} (view)": partial(self._read, "k"),
            f"cache_v_l{layer} (view)": partial(self._read, "v"),
            f"kq_soft_max-{layer}": self._finish,
        }
        self.callback = llama.ggml_backend_sched_eval_callback(self._step)
        self.clear()

    def clear(self) -> None:
        """Forget the blocks."""
        self.blocks: list[Block] = []
        self._cells = 0
        self._views: dict[str, Array] = {}

    def _step(self, tensor: int, asking: bool, _: Any) -> bool:
        """First call: ask for a tensor by its name. Second call, once it is computed: read it. True continues."""
        step = self.names.get(_name(tensor).decode())
        if step is not None and not asking:
            step(tensor)
        return step is not None or not asking

    def _measure(self, tensor: int) -> None:
        """The cells of a sequence, from the whole buffer of values."""
        self._cells = _elements(tensor) // (self.batch * self.heads * self.width)

    def _read(self, kind: str, tensor: int) -> None:
        """A view of the first cells of each sequence. It ends before the buffer does, so it is padded here."""
        self._views[kind] = self._array(tensor, self.dtype)

    def _finish(self, tensor: int) -> None:
        """The weights are the last to come. Values lie transposed."""
        used = _elements(tensor) // _rows(tensor)
        weights = self._array(tensor, np.dtype(np.float32)).reshape(self.batch, self.heads, -1, used)
        keys = self._whole("k").reshape(self.batch, self._cells, self.heads, self.width).swapaxes(1, 2)
        values = self._whole("v").reshape(self.batch, self.heads, self.width, self._cells).swapaxes(2, 3)
        self.blocks.append(Block(keys[:, :, :used], values[:, :, :used], weights))

    def _whole(self, kind: str) -> Array:
        """A view, and zeros instead of the buffer's elements behind it, which are those of the last cells."""
        view = self._views[kind]
        whole = np.zeros(self.batch * self.heads * self.width * self._cells, view.dtype)
        whole[: view.size] = view
        return whole

    def _array(self, tensor: int, dtype: np.dtype[Any]) -> Array:
        array = np.empty(_bytes(tensor) // dtype.itemsize, dtype)
        _get(tensor, array.ctypes.data, 0, array.nbytes)
        return array
