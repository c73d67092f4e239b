"""ONNX Runtime on a CPU: what GroupQueryAttention gives for queries, with a softcap and learned sinks.

The operator makes its own causal mask. Rows are f32, as queries are: the operator takes one type for both. What is
said of the rows themselves is judged of `onnxruntime-gqa`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from kvadapters.attending import attending
from kvadapters.engines.onnxruntime.caches import NAMES, SAID, Grouped, flat, session
from kvadapters.update import from_update
from kvspec.contract import Attention
from kvspec.errors import CannotRun
from kvspec.geometry import Array

try:
    from onnx import TensorProto, helper
except ImportError as e:
    raise CannotRun(f"onnxruntime cannot be imported ({e}); pip install 'kvconform[onnxruntime]'") from e

SINKS = (*NAMES, "", "", "", "", "head_sink")
"""Its inputs with learned sinks: those between are cosines, sines, positions and a bias."""


@lru_cache(maxsize=64)
def operator(heads: int, kv_heads: int, scale: float | None, softcap: float, sinks: bool) -> Any:
    """Make the session of an operator once."""
    from kvadapters.engines.onnx.model import MICROSOFT, model

    node = helper.make_node(
        "GroupQueryAttention",
        SINKS if sinks else NAMES,
        ("output", "present_key", "present_value"),
        domain=MICROSOFT,
        num_heads=heads,
        kv_num_heads=kv_heads,
        softcap=softcap,
        **({} if scale is None else {"scale": scale}),
    )
    return session(model([node], "f32", dict.fromkeys(NAMES[5:], TensorProto.INT32), opset=21))


def attend(cache: Grouped, queries: Array, keys: Array, values: Array, how: Attention) -> Array:
    """Ask for the newest rows again, with these queries, behind the rows before them."""
    (batch, heads, n, _), total = queries.shape, keys.shape[2]
    rows = [flat(a) for a in (queries, keys[:, :, total - n :], values[:, :, total - n :])]
    past = [np.ascontiguousarray(a[:, :, : total - n]) for a in (keys, values)]
    lengths = [np.full(batch, total - 1, np.int32), np.array([total], np.int32)]
    given = dict(zip(NAMES, (*rows, *past, *lengths), strict=True))
    given |= {} if how.sinks is None else {"head_sink": np.array(how.sinks, np.float32)}
    made = operator(heads, keys.shape[1], how.scale, how.softcap, how.sinks is not None)
    output: Array = made.run(["output"], given)[0]
    return output.reshape(batch, n, heads, -1).swapaxes(1, 2)


plain = from_update(
    "onnxruntime-gqa-attention",
    kind="growing",
    make=Grouped,
    update=Grouped.update,
    mask=Grouped.mask,
    length=Grouped.length,
    also=(),
    said={**SAID, "dtypes": ["f32"], "limits": {"dims": {"equal": True, "multiple": 8}}},
)
growing = attending(plain, attend, ("scale", "softcap", "learned sinks"))
