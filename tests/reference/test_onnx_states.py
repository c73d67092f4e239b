"""ONNX's node tests of LinearAttention and CausalConvWithState, an independent standard: the reference's states and
the rows that its convolutions see, give their outputs. `nox -s onnx-states` installs onnx."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvref.arithmetic import fold
from kvspec.geometry import Array, Config

UNIT = 2.0**-24
"""Half the distance of neighbouring f32 numbers, beside 1."""


class Case(NamedTuple):
    """A node test: the node's attributes, its inputs by name, and what comes out."""

    attributes: dict[str, Any]
    inputs: dict[str, Array]
    output: Array
    present: Array


@cache
def cases(module: str) -> dict[str, Case]:
    """The node tests of an operator, by name, each once."""
    pytest.importorskip("onnx", reason="onnx is not installed; `nox -s onnx-states` installs it")
    node = import_module("onnx.backend.test.case.node")
    import_module(f"onnx.backend.test.case.node.{module}")
    every = [case for case in node._NodeTestCases if case.name.startswith(f"test_{module}_")]
    return {
        case.name: _read(case) for case in every if len(case.model.graph.node) == 1 and "expanded" not in case.name
    }


def _read(case: Any) -> Case:
    helper = import_module("onnx.helper")
    (node,), ((inputs, outputs), *_) = case.model.graph.node, case.data_sets
    roles = dict(zip(filter(None, node.input), inputs, strict=True))
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    return Case(attributes, roles, outputs[0], outputs[1])


def heads(rows: Array, count: int) -> Array:
    """Make rows `[batch, n, heads * dim]` `[batch, heads, n, dim]`."""
    return rows.reshape(*rows.shape[:2], count, -1).transpose(0, 2, 1, 3)


def states(case: Case) -> Iterator[tuple[Array, Array]]:
    """The state of each sequence after each of its tokens, `[n, heads, k_dim, v_dim]`, and its queries."""
    count = case.attributes["kv_num_heads"]
    keys, values, queries = (heads(case.inputs[name], count) for name in ("key", "value", "query"))
    decay = np.exp(heads(case.inputs["decay"], count)) if "decay" in case.inputs else np.ones_like(keys)
    begin = case.inputs.get("past_state", np.zeros((len(keys), count, keys.shape[3], values.shape[3]), np.float32))
    for state, *rows, asked in zip(begin, keys, values, decay, queries, strict=True):
        found = []
        for t in range(rows[0].shape[1]):
            k, v, left = (a[:, t : t + 1] for a in rows)
            state = fold.folded(state, k, v, np.broadcast_to(left, k.shape))
            found.append(state)
        yield np.stack(found), asked


LINEAR = ("linear", "gated", "gated_per_head_decay")
"""The rules that take of a token its key and value, and a decay: the others take a beta, which no row has."""


@pytest.mark.parametrize("name", LINEAR)
def test_a_state_is_that_of_linear_attention(name: str) -> None:
    case = cases("linear_attention")[f"test_linear_attention_{name}"]
    each = list(states(case))
    for (state, asked), output, present in zip(each, case.output, case.present, strict=True):
        sums, (n, _, dim, _) = np.cumsum(np.abs(state), 0), state.shape
        assert (np.abs(state[-1] - present) <= 4 * n * UNIT * np.maximum(sums[-1], 1)).all()
        scale = case.attributes.get("scale") or dim**-0.5
        seen, size = (scale * np.einsum("hnk,nhkv->nhv", *pair) for pair in ((asked, state), (np.abs(asked), sums)))
        assert (np.abs(seen.reshape(n, -1) - output) <= 4 * (n + dim) * UNIT * (size.reshape(n, -1) + 1)).all()


def test_folded_at_once_or_one_by_one_to_the_bit() -> None:
    case = cases("linear_attention")["test_linear_attention_gated"]
    count = case.attributes["kv_num_heads"]
    key, value, decay = (heads(case.inputs[name], count)[0] for name in ("key", "value", "decay"))
    begin = np.zeros((count, key.shape[2], value.shape[2]), np.float32)
    whole = fold.folded(begin, key, value, np.exp(decay))
    assert whole.tobytes() == next(states(case))[0][-1].tobytes()


def convolved(case: Case) -> Iterator[tuple[Array, Array]]:
    """What a layer `conv:K` of the reference shows for each sequence, times the weights; and its newest rows."""
    weight, size = case.inputs["weight"][:, 0], case.inputs["weight"].shape[2]
    past = case.inputs.get("past_state", [None] * len(case.inputs["input"]))
    for rows, before in zip(case.inputs["input"], past, strict=True):
        config = Config(of=f"conv:{size}", layers=1, kv_heads=1, k_dim=len(rows), v_dim=1, dtype="f32")
        layer = Reference().open("layers", config)
        for each in (before, rows) if before is not None else (rows,):
            keys = np.ascontiguousarray(each.T[None, None])
            layer.append(keys, np.zeros((*keys.shape[:3], 1), np.float32))
        ((shown, _),), mask = layer.histories(), layer.mask()[0, 0]
        seen = np.stack([shown[0, 0][row] for row in mask])
        yield np.einsum("nkc,ck->cn", seen, weight), shown[0, 0, len(shown[0, 0]) - (size - 1) :].T


def activated(case: Case, sums: Array) -> Array:
    """Sums with the bias and the activation of the node."""
    sums = sums + case.inputs["bias"][:, None] if "bias" in case.inputs else sums
    plain = case.attributes.get("activation", b"none") == b"none"
    return sums if plain else sums / (1 + np.exp(-sums))


CONVOLUTIONS = ("basic", "with_bias", "with_past_state", "silu", "swish_alias")


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_sees_what_is_convolved(name: str) -> None:
    case = cases("causal_conv_with_state")[f"test_causal_conv_with_state_{name}"]
    for (sums, kept), output, present in zip(convolved(case), case.output, case.present, strict=True):
        assert kept.tobytes() == np.ascontiguousarray(present).tobytes()
        size = np.abs(case.inputs["input"]).max() * np.abs(case.inputs["weight"]).sum(-1).max() + 1
        assert np.abs(activated(case, sums) - output).max() <= 16 * UNIT * (size + 1)
