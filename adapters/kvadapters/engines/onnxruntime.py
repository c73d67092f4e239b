"""ONNX Runtime on a CPU: Attention with its past and with a static cache, and GroupQueryAttention with its past,
with and without a local window.

Masks are what the operator itself applies, as in `kvadapters.engines.onnx`. Not claimed: appends of no rows, who
owns arrays, and batches of GroupQueryAttention, which takes several rows of one sequence only. Nothing is opened: a
config only shapes the first past.
"""

from __future__ import annotations

from functools import cache as cached
from typing import Any

import numpy as np

from kvadapters.engines import onnx, onnx_scatter
from kvadapters.engines.limits import one_of, one_width
from kvadapters.engines.onnx_model import MICROSOFT, model
from kvadapters.update import UpdateAdapter, from_update
from kvspec.errors import CannotRun
from kvspec.geometry import DTYPES, Array, Config

try:
    import onnxruntime
    from onnx import TensorProto, helper
except ImportError as e:
    raise CannotRun(f"onnxruntime cannot be imported ({e}); pip install 'kvconform[onnxruntime]'") from e


FLOATS = ["f32", "f16"]
SAID: dict[str, Any] = {"version": onnxruntime.__version__, "dtypes": FLOATS}


def session(made: Any) -> Any:
    """Make a session of a model on the CPU."""
    return onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])


@cached
def attention(dtype: str) -> Any:
    """Make the session of an Attention once."""
    return session(onnx.attention(dtype, None))


growing = from_update(
    "onnxruntime-attention",
    kind="growing",
    make=lambda config: onnx.Cache(attention(one_of(config, FLOATS)), config),
    update=onnx.Cache.update,
    mask=onnx.Cache.mask,
    length=lambda cache: cache.past[0].shape[2],
    also=("batch",),
    said=SAID,
)


@cached
def scatter_session(dtype: str) -> Any:
    """Make the session of a static cache once."""
    return session(onnx_scatter.attention(dtype))


scatter = onnx_scatter.adapter("onnxruntime-scatter", lambda config: scatter_session(one_of(config, FLOATS)), SAID)


NAMES = ("query", "key", "value", "past_key", "past_value", "seqlens_k", "total")
"""The inputs of GroupQueryAttention: the lengths that it is given are those after the append, less one."""


@cached
def grouped_query(dtype: str, heads: int, window: int | None) -> Any:
    """Make the session of a GroupQueryAttention with as many heads of queries as of keys."""
    node = helper.make_node(
        "GroupQueryAttention",
        NAMES,
        ("output", "present_key", "present_value", "weights"),
        domain=MICROSOFT,
        num_heads=heads,
        kv_num_heads=heads,
        qk_output=2,
        local_window_size=-1 if window is None else window,
    )
    return session(model([node], dtype, dict.fromkeys(NAMES[5:], TensorProto.INT32), opset=21))


class Grouped:
    """The past of a GroupQueryAttention: what was present, as the past of the next."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.session = grouped_query(one_of(config, FLOATS), config.kv_heads, config.window)
        shape = (config.batch, config.kv_heads, 0, one_width(config, 8))
        self.past = [np.zeros(shape, DTYPES[config.dtype])] * 2

    def run(self, keys: Array, values: Array, past: list[Array]) -> list[Array]:
        """Run with queries of zeros, heads side by side as the operator has them."""
        flat = [a.swapaxes(1, 2).reshape(a.shape[0], a.shape[2], -1) for a in (np.zeros_like(keys), keys, values)]
        total = past[0].shape[2] + keys.shape[2]
        lengths = [np.full(keys.shape[0], total - 1, np.int32), np.array([total], np.int32)]
        outputs: list[Array] = self.session.run(None, dict(zip(NAMES, (*flat, *past, *lengths), strict=True)))
        return outputs

    def update(self, keys: Array, values: Array) -> tuple[Array, Array]:
        """Attend, and keep what is present."""
        self.past = self.run(keys, values, self.past)[1:3]
        return self.past[0], self.past[1]

    def mask(self, n: int) -> Array:
        """The rows that weigh something when all are zeros."""
        shape, past = self.past[0].shape, [np.zeros_like(a) for a in self.past]
        rows = np.zeros((*shape[:2], n, shape[3]), self.past[0].dtype)
        return self.run(rows, rows, past)[3][:, :1] > 0


def grouped_adapter(name: str, kind: str) -> UpdateAdapter:
    """Make the adapter of one kind."""
    return from_update(
        f"onnxruntime-{name}",
        kind=kind,
        make=Grouped,
        update=Grouped.update,
        mask=Grouped.mask,
        length=lambda cache: cache.past[0].shape[2],
        also=(),
        said={**SAID, "limits": {"dims": {"equal": True, "multiple": 8}}},
    )


grouped = grouped_adapter("gqa", "growing")
grouped_window = grouped_adapter("gqa-window", "ring")
