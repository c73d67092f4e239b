"""The few functions of ggml, llama.cpp's library, that copy rows and attend over them, called by ctypes.

llama-cpp-python has the library. Tensors lie in arrays of the caller, `[B, H, rows, dim]`, which begin at multiples
of `ALIGNED` bytes; ggml names axes from the last to the first.
"""

from __future__ import annotations

import ctypes
import importlib
import os
from types import SimpleNamespace
from typing import Any

import numpy as np

from kvspec.errors import CannotRun
from kvspec.forms import Form
from kvspec.geometry import Array

ALIGNED = 64
TYPES = {"float32": 0, "float16": 1, "q8_0": 8, "int64": 27, "bfloat16": 30}
"""ggml's number of each dtype, and of the form that it attends over."""

NODES = 8
"""Most tensors that a graph computes."""

TENSORS = 16
"""Most tensors of a graph, with those that it is given."""

POINTER, INT, LONG, SIZE, REAL = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_size_t, ctypes.c_float


class Start(ctypes.Structure):
    """ggml_init_params: where a graph's tensors are described, not where their elements lie."""

    _fields_ = (("nbytes", SIZE), ("memory", POINTER), ("no_elements", ctypes.c_bool))


FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "version": (ctypes.c_char_p,),
    "tensor_overhead": (SIZE,),
    "graph_overhead_custom": (SIZE, SIZE, ctypes.c_bool),
    "init": (POINTER, Start),
    "new_tensor_4d": (POINTER, POINTER, INT, *[LONG] * 4),
    "view_4d": (POINTER, POINTER, POINTER, *[LONG] * 4, *[SIZE] * 4),
    "cpy": (POINTER, POINTER, POINTER, POINTER),
    "set_rows": (POINTER, POINTER, POINTER, POINTER, POINTER),
    "quantize_chunk": (SIZE, INT, POINTER, POINTER, LONG, LONG, LONG, POINTER),
    "flash_attn_ext": (POINTER, *[POINTER] * 5, *[REAL] * 3),
    "new_graph_custom": (POINTER, POINTER, SIZE, ctypes.c_bool),
    "build_forward_expand": (None, POINTER, POINTER),
    "backend_cpu_init": (POINTER,),
    "backend_cpu_set_n_threads": (None, POINTER, INT),
    "backend_cpu_buffer_from_ptr": (POINTER, POINTER, SIZE),
    "backend_tensor_alloc": (INT, POINTER, POINTER, POINTER),
    "backend_view_init": (INT, POINTER),
    "backend_graph_compute": (INT, POINTER, POINTER),
}
"""Each function of ggml that is called: its result and its arguments."""


class Library:
    """ggml: `call` has its functions. Its backend on the CPU has a thread for each core; none of them spins."""

    def __init__(self) -> None:
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        self.call: Any = SimpleNamespace(**_functions())
        self.threads = os.cpu_count() or 1
        self.backend = self.call.backend_cpu_init()
        self.call.backend_cpu_set_n_threads(self.backend, self.threads)

    @property
    def words(self) -> str:
        """Give the version and the threads in words."""
        return f"ggml {self.call.version().decode()} on the CPU, {self.threads} threads that do not spin"

    def encoded(self, form: Form, rows: Array) -> Array:
        """Give f32 rows `[B, H, rows, dim]` in a form, in blocks as ggml has them: `[B, H, rows, bytes]`."""
        *lines, dim = rows.shape
        made = aligned(np.empty((*lines, form.row_bytes(dim)), np.uint8))
        whole, count = np.ascontiguousarray(rows, np.float32), rows.size // dim
        self.call.quantize_chunk(TYPES[form.codes], whole.ctypes.data, made.ctypes.data, 0, count, dim, None)
        return made


def decoded(form: Form, kept: Array) -> Array:
    """Give the f32 rows of `q8_0` blocks, each of which is its scale and then its codes."""
    block = np.dtype([("scale", form.of.scale), ("codes", form.of.dtype, form.group)])
    blocks = kept.view(block)
    rows: Array = blocks["codes"] * blocks["scale"].astype(np.float32)[..., None]
    return rows.reshape(*kept.shape[:3], -1)


def _width(form: Form, kept: Array) -> int:
    """Give the elements of rows in blocks."""
    return int(kept.shape[3]) // form.row_bytes(form.group) * form.group


def _functions() -> dict[str, Any]:
    """Find every function. Raises CannotRun if one is missing."""
    found = {}
    try:
        library = importlib.import_module("llama_cpp._ggml").libggml
        for name, (result, *given) in FUNCTIONS.items():
            found[name] = library[f"ggml_{name}"]
            found[name].restype, found[name].argtypes = result, given
    except (OSError, RuntimeError, AttributeError) as e:
        raise CannotRun(f"llama-cpp-python has no ggml that this peer can call: {e}") from e
    return found


class Graph:
    """Copies and one attend over arrays of the caller, done in order by `run`."""

    def __init__(self, library: Library) -> None:
        self._call, self._backend = library.call, library.backend
        nbytes = TENSORS * self._call.tensor_overhead() + self._call.graph_overhead_custom(NODES, False)
        self._memory = ctypes.create_string_buffer(nbytes)
        self._context = self._call.init(Start(nbytes, ctypes.addressof(self._memory), True))
        self._graph = self._call.new_graph_custom(self._context, NODES, False)
        self._arrays: list[Array] = []

    def tensor(self, array: Array, form: Form | None = None) -> int:
        """Make a tensor of an array `[B, H, rows, dim]`, in its memory; of rows in a form `[B, H, rows, bytes]`."""
        name, dim = (array.dtype.name, array.shape[3]) if form is None else (form.codes, _width(form, array))
        made = self._call.new_tensor_4d(self._context, TYPES[name], dim, *reversed(array.shape[:3]))
        return self._placed(made, array)

    def _placed(self, tensor: int, array: Array) -> int:
        self._arrays.append(array)
        buffer = self._call.backend_cpu_buffer_from_ptr(array.ctypes.data, array.nbytes)
        self._call.backend_tensor_alloc(buffer, tensor, array.ctypes.data)
        return tensor

    def encode(self, new: Array, target: int, at: int) -> None:
        """Encode new f32 rows into a tensor in a form, from row `at` on."""
        places = aligned(np.arange(at, at + new.shape[2], dtype=np.int64)[None, None, None])
        written = self._call.set_rows(self._context, target, self.tensor(new), self.tensor(places))
        self._call.backend_view_init(written)
        self._call.build_forward_expand(self._graph, written)

    def copy(self, new: Array, target: int, at: int, rows: int) -> None:
        """Copy new rows into a tensor of this many rows, from row `at` on."""
        batch, heads, n, dim = new.shape
        size = new.dtype.itemsize
        strides = (dim * size, rows * dim * size, heads * rows * dim * size, at * dim * size)
        there = self._call.view_4d(self._context, target, dim, n, heads, batch, *strides)
        copied = self._call.cpy(self._context, self.tensor(new), there)
        for view in (there, copied):
            self._call.backend_view_init(view)
        self._call.build_forward_expand(self._graph, copied)

    def attend(self, queries: Array, keys: int, values: int, mask: Array | None, out: Array) -> None:
        """Attend with queries `[B, heads, n, k_dim]`; outputs are `[B, n, heads, v_dim]`, both f32."""
        scale, seen = 1 / np.sqrt(queries.shape[3]), None if mask is None else self.tensor(mask)
        found = self._call.flash_attn_ext(self._context, self.tensor(queries), keys, values, seen, scale, 0.0, 0.0)
        self._call.build_forward_expand(self._graph, self._placed(found, out))

    def run(self) -> None:
        """Do it all."""
        self._call.backend_graph_compute(self._backend, self._graph)


def aligned(array: Array) -> Array:
    """Copy an array to memory that begins where ggml wants it to."""
    memory = np.empty(array.nbytes + ALIGNED, np.uint8)
    begin = -memory.ctypes.data % ALIGNED
    found: Array = memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found
