"""Learned sinks by ATTN-44: the definition is within the bound, and what is wrong in one thing is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kvref.list_model.attention_bound import Scoring, outputs
from kvspec.geometry import Array

HEADS, DIM, ROWS = 4, 16, 40
SINKS = (0.0, 1.5, -2.0, 6.0)

Answer = Callable[[Array, Array, Array, tuple[float, ...]], Array]
"""Gives the outputs `[heads, dim]` of queries `[heads, dim]` over rows `[kv_heads, rows, dim]`."""


def softmaxed(scores: Array, sinks: tuple[float, ...]) -> Array:
    whole = np.concatenate([scores, np.array(sinks, np.float32)[:, None]], 1)
    weights = np.exp(whole - whole.max(1, keepdims=True))
    return np.asarray((weights / weights.sum(1, keepdims=True))[:, :-1])


def scored(queries: Array, keys: Array) -> Array:
    return np.einsum("hd,hrd->hr", queries, keys.repeat(2, 0)) / np.float32(np.sqrt(DIM))


def definition(queries: Array, keys: Array, values: Array, sinks: tuple[float, ...]) -> Array:
    weights = softmaxed(scored(queries, keys), sinks)
    return np.einsum("hr,hrd->hd", weights, values.repeat(2, 0))


def afterwards(queries: Array, keys: Array, values: Array, sinks: tuple[float, ...]) -> Array:
    """By the log of the sum, as a kernel that knows of no sinks is mended: output / (1 + exp(z - lse))."""
    found = scored(queries, keys)
    lse = np.log(np.exp(found - found.max(1, keepdims=True)).sum(1)) + found.max(1)
    plain = definition(queries, keys, values, (float("-inf"),) * HEADS)
    return np.asarray(plain / (1 + np.exp(np.array(sinks, np.float32) - lse))[:, None], np.float32)


def forgotten(queries: Array, keys: Array, values: Array, sinks: tuple[float, ...]) -> Array:
    return definition(queries, keys, values, (float("-inf"),) * HEADS)


def twice(queries: Array, keys: Array, values: Array, sinks: tuple[float, ...]) -> Array:
    return definition(queries, keys, values, tuple(z + float(np.log(2)) for z in sinks))


def in_powers_of_2(queries: Array, keys: Array, values: Array, sinks: tuple[float, ...]) -> Array:
    """The sink is added to a sum that is counted in powers of 2."""
    return definition(queries, keys, values, tuple(z * float(np.log(2)) for z in sinks))


def used(answer: Answer, seed: int) -> float:
    """The largest share of the bound by which an answer is off."""
    random = np.random.default_rng(seed)
    queries = random.standard_normal((HEADS, DIM), np.float32)
    keys, values = (random.standard_normal((2, ROWS, DIM), np.float32) for _ in "kv")
    kept: Any = {r: (keys[None, :, r], values[None, :, r]) for r in range(ROWS)}
    sees: Any = [[[dict.fromkeys(kept, ())]]]
    want = outputs(queries[None, :, None].astype(float), sees, kept, "f32", DIM, how=Scoring(sinks=SINKS))
    return float((np.abs(answer(queries, keys, values, SINKS) - want.middle[0, :, 0]) / want.bound[0, :, 0]).max())


@pytest.mark.parametrize("answer", [definition, afterwards], ids=lambda a: a.__name__)
def test_the_definition_is_within_the_bound(answer: Answer) -> None:
    assert max(used(answer, seed) for seed in range(20)) <= 1


@pytest.mark.parametrize("answer", [forgotten, twice, in_powers_of_2], ids=lambda a: a.__name__)
def test_what_is_wrong_is_not(answer: Answer) -> None:
    assert min(used(answer, seed) for seed in range(20)) > 1


def head_sink(queries: Array, keys: Array, values: Array, sinks: tuple[float, ...]) -> Array:
    """GroupQueryAttention of ONNX Runtime: the last row is that of the query."""
    from onnx import TensorProto, helper
    from onnxruntime import InferenceSession

    names = ("query", "key", "value", "past_key", "past_value", "seqlens_k", "total", "head_sink")
    flat = queries.reshape(1, 1, -1), *(a[:, -1:].reshape(1, 1, -1) for a in (keys, values))
    lengths = np.array([ROWS - 1], np.int32), np.array([ROWS], np.int32)
    arrays = *flat, keys[None, :, :-1], values[None, :, :-1], *lengths, np.array(sinks, np.float32)
    outputs = "output", "present_key", "present_value"
    node = helper.make_node(
        "GroupQueryAttention",
        [*names[:-1], "", "", "", "", names[-1]],
        outputs,
        domain="com.microsoft",
        num_heads=HEADS,
        kv_num_heads=2,
    )
    types = [TensorProto.INT32 if a.dtype == np.int32 else TensorProto.FLOAT for a in arrays]
    taken = [helper.make_tensor_value_info(n, t, a.shape) for n, t, a in zip(names, types, arrays, strict=True)]
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph([node], "g", taken, given), opset_imports=opsets, ir_version=10)
    session = InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, dict(zip(names, arrays, strict=True)))[0].reshape(HEADS, DIM))


def test_onnxruntime_follows_the_definition() -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed; `nox -s engines` installs it")
    assert max(used(head_sink, seed) for seed in range(20)) <= 1
