"""ONNX's static cache. TensorScatter writes into buffers of `max_len` rows, and Attention is told how many are
valid.

Positions are the caller's: it says where to write. A mask is what Attention itself applies: see
`kvadapters.engines.onnx.attention`. Not claimed: who owns arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from kvadapters.engines.onnx.model import model
from kvadapters.update import UpdateAdapter, from_update
from kvspec.geometry import DTYPES, Array, Config

OPSET = 24
"""The first with TensorScatter."""


def attention(dtype: str) -> Any:
    """The model: keys and values are written from `at` on, and queries attend to the `valid` first rows."""
    scatter = [
        helper.make_node("TensorScatter", [f"past_{name}", name, "at"], [f"present_{name}"], axis=2)
        for name in ("key", "value")
    ]
    inputs = ["query", "present_key", "present_value", "", "", "", "valid"]
    attend = helper.make_node(
        "Attention", inputs, ["output", "", "", "weights"], is_causal=1, qk_matmul_output_mode=3
    )
    return model([*scatter, attend], dtype, dict.fromkeys(("at", "valid"), TensorProto.INT64), OPSET)


class Buffer:
    """The buffers of one Attention, and where the newest rows were written."""

    def __init__(self, session: Any, config: Config) -> None:
        self.session = session
        self.past = [np.zeros(config.shape(kind, config.max_len or 0), DTYPES[config.dtype]) for kind in "kv"]
        self.first = 0

    def run(self, keys: Array, values: Array, past: list[Array], first: int) -> list[Array]:
        """Run with queries of zeros: the buffers of keys and values, the output, the weights."""
        names = ("query", "key", "value", "past_key", "past_value", "at", "valid")
        places = [np.full(keys.shape[0], n, np.int64) for n in (first, first + keys.shape[2])]
        arrays = (np.zeros_like(keys), keys, values, *past, *places)
        with np.errstate(invalid="ignore"):  # scores of rows that hold NaN
            outputs: list[Array] = self.session.run(None, dict(zip(names, arrays, strict=True)))
        return outputs

    def update(self, keys: Array, values: Array, first: int) -> tuple[Array, Array]:
        """Attend, and keep the buffers."""
        self.past, self.first = self.run(keys, values, self.past, first)[:2], first
        return self.past[0], self.past[1]

    def mask(self, n: int) -> Array:
        """The rows of the buffers that weigh something when all are zeros."""
        past = [np.zeros_like(a) for a in self.past]
        keys, values = (a[:, :, :n] for a in past)
        return self.run(keys, values, past, self.first)[3][:, :1] > 0


def adapter(name: str, session: Callable[[Config], Any], said: Mapping[str, Any], *also: str) -> UpdateAdapter:
    """Make the adapter of an engine that makes a session of a config."""
    return from_update(
        name,
        kind="bounded",
        make=lambda config: Buffer(session(config), config),
        update=Buffer.update,
        mask=Buffer.mask,
        also=("batch", "rewind", *also),
        dialect={"bounded.positions": "caller", "mask.made": "after"},
        said=said,
    )
