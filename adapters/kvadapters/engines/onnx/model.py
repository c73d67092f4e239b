"""Small models of ONNX, made of a few nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnx import helper

from kvspec.geometry import DTYPES

OPSET = 25
"""The first with sliding windows."""

MICROSOFT = "com.microsoft"
"""The domain of the operators that ONNX Runtime adds."""


def model(nodes: Sequence[Any], dtype: str, whole: Mapping[str, int] | None = None, opset: int = OPSET) -> Any:
    """Make a model of these nodes, in the order in which they run; it gives the outputs of all.

    Arrays have the dtype, except those that `whole` names with an integer type; any shape fits.
    """
    element = helper.np_dtype_to_tensor_dtype(DTYPES[dtype])
    outputs = [name for node in nodes for name in node.output if name]
    inputs = dict.fromkeys(name for node in nodes for name in node.input if name and name not in outputs)
    values = [
        [helper.make_tensor_value_info(name, (whole or {}).get(name, element), None) for name in names]
        for names in (inputs, outputs)
    ]
    graph = helper.make_graph(nodes, "a few nodes", *values)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=11)
