"""Writes a probe as ONNX, with the operators of onnxruntime that its own builder of models takes, and the
configuration that onnxruntime-genai reads. Feed-forward parts, which add zero, are left out."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from kvadapters.probe.architecture import Architecture
from kvadapters.probe.arrays import Array
from kvadapters.probe.formats.tokenizer import END
from kvadapters.probe.layout import HEAD_DIM, Layout
from kvadapters.probe.network import Layer, Network, Rope
from kvspec.errors import BadInput

NAMES = {
    "llama": "llama",
    "mistral": "mistral",
    "qwen3": "qwen3",
    "phi3": "phi3",
    "gemma3": "gemma3_text",
    "gpt-oss": "gptoss",
}
"""What onnxruntime-genai calls the architectures that onnxruntime's attention can be."""
LONGEST = 4096
"""Positions that RoPE has."""
FUSED = "com.microsoft"


def checked(architecture: Architecture) -> None:
    """Raise BadInput for an architecture that onnxruntime's attention cannot be."""
    if architecture.name not in NAMES:
        raise BadInput(f"no ONNX of {architecture.name}; there are {', '.join(NAMES)}")


def write(path: Path, network: Network) -> str:
    """Write a model in f32; give the file's SHA-256."""
    data = _Graph(network).model().SerializeToString(deterministic=True)
    path.write_bytes(data)
    return hashlib.sha256(data).hexdigest()


def config(architecture: Architecture, layout: Layout) -> dict[str, Any]:
    """Give genai_config.json."""
    end = list(layout.words()).index(END)
    past, present = (
        {f"{name}_{part}_names": f"{of}.%d.{part}" for part in ("key", "value")}
        for name, of in (("past", "past_key_values"), ("present", "present"))
    )
    decoder = {
        "filename": "model.onnx",
        "session_options": {"provider_options": []},
        "head_size": HEAD_DIM,
        "hidden_size": layout.hidden,
        "num_attention_heads": layout.heads,
        "num_key_value_heads": layout.kv_heads,
        "num_hidden_layers": len(layout.layers),
        "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask", **past},
        "outputs": {"logits": "logits", **present},
    }
    ids = {"bos_token_id": end, "eos_token_id": end, "pad_token_id": end, "vocab_size": layout.vocabulary}
    return {
        "model": {"type": NAMES[architecture.name], "context_length": LONGEST, **ids, "decoder": decoder},
        "search": {"max_length": LONGEST, "past_present_share_buffer": True, "do_sample": False},
    }


class _Graph:
    """A graph that grows node by node; a tensor is known by its name."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.nodes = list[Any]()
        self.weights = dict[str, Any]()

    def model(self) -> Any:
        """Give the whole."""
        hidden = self._embedded()
        for number, layer in enumerate(self.network.attending):
            hidden = self._layer(f"layer{number}", number, layer, hidden)
        normed = self._norm("final", hidden, np.ones(self.network.embedding.shape[1]))
        self._node("MatMul", "logits", normed, self._weight("output", self.network.output.T))
        graph = helper.make_graph(
            self.nodes, "probe", self._inputs(), self._outputs(), initializer=list(self.weights.values())
        )
        versions = [helper.make_opsetid("", 20), helper.make_opsetid(FUSED, 1)]
        return helper.make_model(graph, ir_version=10, opset_imports=versions, producer_name="kvconform")

    def _embedded(self) -> str:
        """Look tokens up, and count them as attention wants: the newest row's number, and rows in all."""
        self._node("ReduceSum", "rows", "attention_mask", self._ints("last", [1]), keepdims=1)
        self._node("Sub", "newest", "rows", self._ints("one", [1]))
        self._node("Cast", "newest32", "newest", to=TensorProto.INT32)
        self._node("Shape", "shape", "attention_mask")
        self._node("Gather", "total", "shape", self._ints("second", 1))
        self._node("Cast", "total32", "total", to=TensorProto.INT32)
        self._node("Gather", "looked_up", self._weight("embedding", self.network.embedding), "input_ids")
        factor = self._weight("embedding.factor", np.array(self.network.embedding_factor))
        return self._node("Mul", "embedded", "looked_up", factor)

    def _layer(self, name: str, number: int, layer: Layer, hidden: str) -> str:
        normed = self._norm(f"{name}.norm", hidden, np.ones(len(layer.out)))
        parts = [
            self._projected(f"{name}.{part}", normed, weight, gain)
            for part, weight, gain in (
                ("query", layer.query, layer.gains and layer.gains[0]),
                ("key", layer.key, layer.gains and layer.gains[1]),
                ("value", layer.value, None),
            )
        ]
        attended = self._attended(name, number, layer, parts)
        given = self._node("MatMul", f"{name}.given", attended, self._weight(f"{name}.out", layer.out.T))
        if layer.out_gain is not None:
            given = self._norm(f"{name}.behind", given, np.full(len(layer.out), layer.out_gain))
        return self._node("Add", f"{name}.hidden", hidden, given)

    def _projected(self, name: str, normed: str, weight: Array, gain: float | None) -> str:
        rows = self._node("MatMul", name, normed, self._weight(f"{name}.weight", weight.T))
        if gain is None:
            return rows
        heads = self._node("Reshape", f"{name}.heads", rows, self._ints("heads", [0, -1, HEAD_DIM]))
        gained = self._norm(f"{name}.norm", heads, np.full(HEAD_DIM, gain))
        return self._node("Reshape", f"{name}.normed", gained, self._ints(f"{name}.width", [0, -1, len(weight)]))

    def _attended(self, name: str, number: int, layer: Layer, parts: list[str]) -> str:
        """Attend; `local_window_size` counts the query itself."""
        assert layer.rope is not None
        past = [f"past_key_values.{number}.{part}" for part in ("key", "value")]
        sink = []
        if layer.sink is not None:
            sinks = np.full(self.network.heads, layer.sink)
            sink = ["", "", self._weight("sinks", sinks)]
        given = [*parts, *past, "newest32", "total32", *self._turns(layer.rope), *sink]
        self.nodes.append(
            helper.make_node(
                "GroupQueryAttention",
                given,
                [f"{name}.attended", *(f"present.{number}.{part}" for part in ("key", "value"))],
                domain=FUSED,
                num_heads=self.network.heads,
                kv_num_heads=self.network.kv_heads,
                scale=layer.scale,
                local_window_size=layer.view.size or -1,
                do_rotary=1,
                rotary_interleaved=int(layer.rope.neighbours),
            )
        )
        return f"{name}.attended"

    def _turns(self, rope: Rope) -> list[str]:
        """Give cosines and sines of all positions."""
        angles = np.arange(LONGEST)[:, None] * rope.frequencies
        return [self._weight(f"{f.__name__}.{rope.theta:g}", f(angles)) for f in (np.cos, np.sin)]

    def _norm(self, name: str, x: str, gains: Array) -> str:
        weight = self._weight(f"{name}.gains", gains)
        return self._node(
            "SimplifiedLayerNormalization", name, x, weight, epsilon=self.network.eps, axis=-1, stash_type=1
        )

    def _node(self, operator: str, name: str, *given: str, **how: Any) -> str:
        self.nodes.append(helper.make_node(operator, list(given), [name], **how))
        return name

    def _weight(self, name: str, values: Array) -> str:
        self.weights[name] = numpy_helper.from_array(np.ascontiguousarray(values, np.float32), name)
        return name

    def _ints(self, name: str, values: Any) -> str:
        self.weights[name] = numpy_helper.from_array(np.array(values, np.int64), name)
        return name

    def _inputs(self) -> list[Any]:
        """Describe ids, the mask, and past rows."""
        return [
            helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "tokens"]),
            helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "total"]),
            *self._rows("past_key_values", "past"),
        ]

    def _outputs(self) -> list[Any]:
        """Describe logits, and the rows behind a request."""
        shape = ["batch", "tokens", len(self.network.output)]
        logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, shape)
        return [logits, *self._rows("present", "total")]

    def _rows(self, name: str, length: str) -> list[Any]:
        shape = ["batch", self.network.kv_heads, length, HEAD_DIM]
        return [
            helper.make_tensor_value_info(f"{name}.{number}.{part}", TensorProto.FLOAT, shape)
            for number in range(len(self.network.layers))
            for part in ("key", "value")
        ]
