"""ONNX Runtime on a CPU. GroupQueryAttention appends and attends, and one buffer is past and present.

Of rows in 8 bits it has one scale for a whole cache, so it stands beside caches with a scale for each row.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from kvadapters.engines.onnx.model import MICROSOFT, model
from kvprofile.case import Case
from kvprofile.operation import Job
from kvprofile.peers.correct import demand
from kvprofile.peers.host_arrays import Rows
from kvprofile.peers.numpy_peer import Arrays
from kvspec.forms import Form
from kvspec.geometry import DTYPES, Array

INPUTS = ("query", "key", "value", "past_key", "past_value", "last", "total")
"""The lengths it is given are those after the append: of each entry less one, and the longest."""

SCALES = ("k_scale", "v_scale")
"""What it is given besides for rows in a form, after inputs that are left out."""

LEFT_OUT = ("",) * 5

OUTPUTS = ("output", "present_key", "present_value")
CACHES = (*INPUTS[3:5], *OUTPUTS[1:])
FORM = "int8/1"
STEP = 1 / 32
"""The scale of rows in a form: random rows of a normal distribution are below 127 of them."""

DTYPES_OF_IT = ("f32", "f16")
BEHIND = {"attention": 1, "captured attention": 0}
"""The operations it has, and how often `case.rows` rows lie behind the context after an append."""


class GroupQueryAttention:
    """The peer. Its arrays are bound before the clock runs, so a turn only starts it."""

    name = "onnxruntime"

    def __init__(self) -> None:
        self._runtime: Any = importlib.import_module("onnxruntime")
        self._onnx: Any = importlib.import_module("onnx")
        version = self._runtime.__version__
        self.words = f"onnxruntime {version} on the CPU: GroupQueryAttention, past and present in one buffer"

    def job(self, case: Case, memory: int) -> Job | None:
        """Append the newest rows to a buffer and attend. Raises Wrong if the output is wrong."""
        if case.operation not in BEHIND or case.dtype not in DTYPES_OF_IT or (case.rows > 1 and case.batch > 1):
            return None
        if case.form not in (None, FORM):
            return None
        rows, session = Rows(Arrays() if case.form is None else OneScale(), case, memory), self._session(case)
        held = case.context + BEHIND[case.operation] * case.rows
        caches = rows.caches(held) if case.form is None else [(k, v) for (k,), (v,) in rows.formed(held)]
        sources = rows.caches(case.rows, 64, 1)
        queries, out = rows.queries().astype(DTYPES[case.dtype]), _flat(rows.queries().astype(DTYPES[case.dtype]))
        bound = [
            _bound(session, queries, sources[i % len(sources)], cache, held, out) for i, cache in enumerate(caches)
        ]
        session.run_with_iobinding(bound[0])
        keys, values = map(_read, caches[0])
        demand(case.dtype, _unflat(out, queries.shape), queries, keys, values)
        return Job(lambda i: session.run_with_iobinding(bound[i % len(bound)]))

    def _session(self, case: Case) -> Any:
        """Make a session whose threads do not spin: they would keep others from their turn."""
        types, whole = self._onnx.TensorProto, dict.fromkeys(INPUTS[5:], self._onnx.TensorProto.INT32)
        inputs: tuple[str, ...] = INPUTS
        kept: dict[str, Any] = {}
        if case.form is not None:
            inputs = (*INPUTS, *LEFT_OUT, *SCALES)
            kept = {"k_quant_type": "PER_TENSOR", "v_quant_type": "PER_TENSOR", "kv_cache_bit_width": 8}
            whole |= dict.fromkeys(CACHES, types.INT8) | dict.fromkeys(SCALES, types.FLOAT)
        node = self._onnx.helper.make_node(
            "GroupQueryAttention",
            inputs,
            OUTPUTS,
            domain=MICROSOFT,
            num_heads=case.model.heads,
            kv_num_heads=case.model.kv_heads,
            **kept,
        )
        made = model([node], case.dtype, whole, opset=21).SerializeToString()
        options = self._runtime.SessionOptions()
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        return self._runtime.InferenceSession(made, options, providers=["CPUExecutionProvider"])

    def wait(self) -> None:
        """Do nothing: it is done when it returns."""


class OneScale(Arrays):
    """numpy, with codes of 8 bits that share the scale `STEP`."""

    def encoded(self, form: Form, rows: Array) -> tuple[Array, ...]:
        """Divide by the scale and round."""
        codes = np.rint(rows.astype(np.float32) / np.float32(STEP))
        return (np.clip(codes, -form.of.top, form.of.top).astype(form.of.dtype),)


def _read(rows: Array) -> Array:
    """Give rows as they are read: codes times the scale."""
    return rows * np.float32(STEP) if rows.dtype == np.int8 else rows


def _flat(rows: Array) -> Array:
    """Turn `[B, H, n, dim]` into `[B, n, H * dim]`, as the operator wants new rows."""
    return np.ascontiguousarray(rows.swapaxes(1, 2)).reshape(len(rows), rows.shape[2], -1)


def _unflat(rows: Array, shape: tuple[int, ...]) -> Array:
    batch, heads, n, dim = shape
    return rows.reshape(batch, n, heads, dim).swapaxes(1, 2)


def _bound(
    session: Any, queries: Array, new: tuple[Array, Array], cache: tuple[Array, Array], held: int, out: Array
) -> Any:
    """Bind the arrays of one cache: its buffers are both inputs and outputs."""
    lengths = np.full(len(queries), held - 1, np.int32), np.array([held], np.int32)
    arrays = dict(zip(INPUTS, (*map(_flat, (queries, *new)), *cache, *lengths), strict=True))
    if cache[0].dtype == np.int8:
        arrays |= {name: np.full(1, STEP, np.float32) for name in SCALES}
    binding = session.io_binding()
    for name, array in arrays.items():
        binding.bind_ortvalue_input(name, _value(array))
    for name, array in zip(OUTPUTS, (out, *cache), strict=True):
        binding.bind_ortvalue_output(name, _value(array))
    return binding


def _value(array: Array) -> Any:
    """Give an array as a value of ONNX Runtime, in the same memory."""
    value: Any = importlib.import_module("onnxruntime").OrtValue.ortvalue_from_numpy(array)
    assert value.data_ptr() == array.ctypes.data
    return value
