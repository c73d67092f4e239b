"""OpenVINO on a CPU: ScaledDotProductAttention with its rows in states, as OpenVINO GenAI runs it.

New rows are put behind those of a state, and attended to, in one call. The states are f32 or f16. In the form
`int8/1` they have 8 bits, with a scale and a zero for each row in a head. The heads of a group share a key by the
pattern that its compiler knows: rows are multiplied by ones, once for each head. Any other way it copies all rows.
"""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

import numpy as np

from kvprofile.case import Case
from kvprofile.operation import Job
from kvprofile.peers.correct import demand
from kvprofile.peers.host_arrays import Rows
from kvprofile.peers.numpy_peer import Arrays
from kvspec.geometry import Array

STATES = {"f32": "f32", "f16": "f16", "int8/1": "u8"}
"""What the state of a dtype or a form consists of. Which states of bf16 there are, depends on the processor."""

NAMES = "past_k", "past_v"
STEPS = 16
"""Calls of a request before its states are set back: each makes them `case.rows` rows longer."""

MOST_ROWS = 16
"""Most rows of a call: it is given a mask of all rows for each."""

FUSED = "ScaledDotProductAttention"
"""The layer that attends over a state where it lies; without it rows are copied."""


class Attention:
    """The peer. Arrays are bound and masks are made before the clock runs."""

    name = "openvino"

    def __init__(self) -> None:
        self._ov: Any = importlib.import_module("openvino")
        self._ops: Any = importlib.import_module("openvino.opset13")
        self._states: Any = importlib.import_module("openvino.opset6")
        version = self._ov.__version__.partition("-")[0]
        self.words = f"openvino {version} on the CPU: ScaledDotProductAttention, rows in states"

    def job(self, case: Case, memory: int) -> Job | None:
        """Append the newest rows to states and attend. Raises Wrong if the output is wrong."""
        kept = STATES.get(case.form or case.dtype)
        if case.operation != "attention" or kept is None or case.rows > MOST_ROWS:
            return None
        rows = Rows(Arrays(), case, memory)
        model, caches = self._compiled(case, kept), rows.caches(case.context)
        sources = rows.pairs((case.batch, case.model.kv_heads, case.rows), 64, "f32", 1)
        queries = np.ascontiguousarray(rows.queries(), np.float32)
        requests = [
            self._request(model, queries, *sources[i % len(sources)], np.arange(case.batch, dtype=np.int32))
            for i in range(len(caches))
        ]
        masks = [self._ov.Tensor(_mask(case.rows, case.context + i * case.rows)) for i in range(1, STEPS + 1)]

        def do(i: int) -> None:
            request = requests[i % len(requests)]
            request.set_input_tensor(4, masks[i // len(requests)])
            request.infer(share_inputs=True, share_outputs=True)

        reset = partial(self._set, requests, caches)
        reset()
        do(0)
        keys, values = (np.array(state.state.data) for state in _states(requests[0]))
        demand(case.dtype, requests[0].get_output_tensor(0).data, queries, keys, values)
        reset()
        return Job(do, len(requests) * STEPS, reset, {"form": f"states of {kept}"})

    def _compiled(self, case: Case, kept: str) -> Any:
        """Compile the model of a layer. Raises RuntimeError where it would copy rows."""
        ops, model = self._ops, case.model
        dims = {"q": (model.heads, model.dim), "k": (model.kv_heads, model.dim), "v": (model.kv_heads, model.v_dim)}
        queries, *new = (ops.parameter([-1, h, -1, d], np.float32, name=name) for name, (h, d) in dims.items())
        beam = ops.parameter([-1], np.int32, name="beam")
        mask = ops.parameter([-1, 1, -1, -1], np.float32, name="mask")
        whole = [self._behind(name, rows, queries, beam) for name, rows in zip(NAMES, new, strict=True)]
        kept_in = [self._states.assign(rows, name) for name, rows in zip(NAMES, whole, strict=True)]
        read = [self._for_each_head(rows, model.heads, model.kv_heads) for rows in whole]
        out = ops.result(ops.scaled_dot_product_attention(queries, *read, mask))
        layer = self._ov.Model([out], kept_in, [queries, *new, beam, mask], "one layer")
        said = {"KV_CACHE_PRECISION": kept, "INFERENCE_PRECISION_HINT": "f32"}
        made = self._ov.Core().compile_model(layer, "CPU", said)
        if FUSED not in [op.get_rt_info()["layerType"].astype(str) for op in made.get_runtime_model().get_ops()]:
            raise RuntimeError("its compiler makes other layers of attention, which copy rows")
        return made

    def _behind(self, name: str, new: Any, queries: Any, beam: Any) -> Any:
        """Give the rows of a state with new ones behind them."""
        ops, (_, heads, _, width) = self._ops, new.get_output_partial_shape(0)
        heads, width = heads.get_length(), width.get_length()
        batch = ops.gather(ops.shape_of(queries, output_type="i64"), [0], np.int64(0))
        shape = ops.concat([batch, ops.constant(np.array([heads, 0, width], np.int64))], 0)
        empty = ops.broadcast(ops.constant(np.float32(0)), shape)
        state = self._states.read_value(empty, name, np.float32, self._ov.PartialShape([-1, heads, -1, width]))
        return ops.concat([ops.gather(state, beam, np.int64(0)), new], 2)

    def _for_each_head(self, rows: Any, heads: int, kv_heads: int) -> Any:
        """Give each query head the rows of its group."""
        if heads == kv_heads:
            return rows
        ops, width = self._ops, rows.get_output_partial_shape(0)[3].get_length()
        apart = ops.reshape(rows, ops.constant(np.array([0, kv_heads, 1, -1, width], np.int64)), True)
        ones = ops.constant(np.ones((1, 1, heads // kv_heads, 1, 1), np.float32))
        shape = ops.constant(np.array([0, heads, -1, width], np.int64))
        return ops.reshape(ops.multiply(apart, ones), shape, True)

    def _request(self, model: Any, *arrays: Array) -> Any:
        """Make a request with copies of these arrays bound to its first inputs."""
        made = model.create_infer_request()
        for i, array in enumerate(arrays):
            made.set_input_tensor(i, self._ov.Tensor(array))
        return made

    def _set(self, requests: list[Any], caches: list[tuple[Array, Array]]) -> None:
        """Set the states of all requests to the context."""
        for request, cache in zip(requests, caches, strict=True):
            for state, rows in zip(_states(request), cache, strict=True):
                state.state = self._ov.Tensor(np.ascontiguousarray(rows, np.float32))

    def wait(self) -> None:
        """Do nothing: it is done when it returns."""


def _states(request: Any) -> list[Any]:
    found = {state.name: state for state in request.query_state()}
    return [found[name] for name in NAMES]


def _mask(n: int, rows: int) -> Array:
    """Give what is added to the scores of n queries; the last query sees all rows."""
    ahead = np.arange(rows) > rows - n + np.arange(n)[:, None]
    return np.where(ahead, -np.inf, 0.0).astype(np.float32)[None, None]
