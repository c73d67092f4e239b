"""ONNX's reference evaluator: the operator Attention with its past, and with a static cache.

A mask is what Attention itself applies: its weights after the softmax for rows of zeros, in which every row that
a query sees weighs the same. Not claimed: appends of no rows, rewinding (the caller cuts the past) and who owns
arrays. Nothing is opened: a config only shapes the first past.
"""

from __future__ import annotations

from functools import cache as cached
from typing import Any

import numpy as np

from kvadapters.update import UpdateAdapter, from_update
from kvspec.errors import CannotRun
from kvspec.geometry import DTYPES, Array, Config

try:
    import onnx
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    from kvadapters.engines.onnx import copy as onnx_copy
    from kvadapters.engines.onnx import scatter as onnx_scatter
    from kvadapters.engines.onnx.model import OPSET, model
except ImportError as e:
    raise CannotRun(f"onnx cannot be imported ({e}); pip install 'kvconform[onnx]'") from e


def attention(dtype: str, window: int | None) -> Any:
    """The model of an Attention with its past: queries see their own row and all before it, or `window` of them.

    ONNX counts the rows left of the query. Raises ValueError for a window below 0: -1 is its word for all.
    """
    if window is not None and window < 0:
        raise ValueError(f"a window of {window} rows left of the query cannot be written")
    inputs, past = ["Q", "K", "V"], ["past_key", "past_value"]
    outputs = ["Y", "present_key", "present_value", "weights"]
    bound = {"left_window_size": window} if window is not None else {}
    node = helper.make_node(
        "Attention", [*inputs, "", *past], outputs, is_causal=1, qk_matmul_output_mode=3, **bound
    )
    return model([node], dtype)


class Cache:
    """The past of one Attention, as an engine keeps it: the present outputs are the past of the next call."""

    def __init__(self, session: Any, config: Config) -> None:
        self.session, self.config = session, config
        self.past = [np.zeros(config.shape(kind, 0), DTYPES[config.dtype]) for kind in "kv"]

    def run(self, keys: Array, values: Array, past: list[Array]) -> list[Array]:
        """Run with queries of zeros."""
        names = ("Q", "K", "V", "past_key", "past_value")
        arrays = (np.zeros_like(keys), keys, values, *past)
        with np.errstate(invalid="ignore"):  # scores of rows that hold NaN
            outputs: list[Array] = self.session.run(None, dict(zip(names, arrays, strict=True)))
        return outputs

    def update(self, keys: Array, values: Array) -> tuple[Array, Array]:
        """Attend, and keep what is present."""
        self.past = self.run(keys, values, self.past)[1:3]
        return self.past[0], self.past[1]

    def mask(self, n: int) -> Array:
        """The rows that weigh something when all are zeros."""
        dtype = DTYPES[self.config.dtype]
        rows = [np.zeros(self.config.shape(kind, n), dtype) for kind in "kv"]
        weights = self.run(rows[0], rows[1], [np.zeros_like(a) for a in self.past])[3]
        return weights[:, :1] > 0


@cached
def evaluator(dtype: str, window: int | None) -> Any:
    """Make the evaluator of a model once."""
    return ReferenceEvaluator(attention(dtype, window))


def adapter(name: str, kind: str, **dialect: str) -> UpdateAdapter:
    """Make the adapter of one kind."""
    return from_update(
        f"onnx-{name}",
        kind=kind,
        make=lambda config: Cache(evaluator(config.dtype, config.window), config),
        update=Cache.update,
        mask=Cache.mask,
        length=lambda cache: cache.past[0].shape[2],
        also=("batch",),
        dialect=dialect,
        said={"version": onnx.__version__, "details": {"opset": OPSET}},
    )


growing = adapter("attention", "growing")
window = adapter("attention-window", "ring", **{"ring.counts": "left only"})


@cached
def scatter_evaluator(dtype: str) -> Any:
    """Make the evaluator of a static cache once."""
    return ReferenceEvaluator(onnx_scatter.attention(dtype))


scatter = onnx_scatter.adapter(
    "onnx-scatter",
    lambda config: scatter_evaluator(config.dtype),
    {"version": onnx.__version__, "details": {"opset": onnx_scatter.OPSET}},
    "zero",
)

copy = onnx_copy.adapter(
    "onnx-copy", ReferenceEvaluator, {"version": onnx.__version__, "details": {"opset": onnx_scatter.OPSET}}
)
