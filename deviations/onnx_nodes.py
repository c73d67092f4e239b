"""Small models of ONNX: a few nodes, whose inputs and outputs have any shape."""

from __future__ import annotations

from onnx import TensorProto, helper


def model(*nodes, opset, element=TensorProto.FLOAT, whole=None):
    """Make a model of the nodes in the order in which they run; it gives the outputs of all.

    Arrays have the type `element`, except those that `whole` names with an integer type.
    """
    outputs = [name for node in nodes for name in node.output]
    inputs = dict.fromkeys(name for node in nodes for name in node.input if name and name not in outputs)
    values = [
        [helper.make_tensor_value_info(name, (whole or {}).get(name, element), None) for name in names]
        for names in (inputs, outputs)
    ]
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(nodes, "a few nodes", *values)
    return helper.make_model(graph, opset_imports=opsets, ir_version=11)


def scatter(element=TensorProto.FLOAT):
    """Make a model of one TensorScatter: `rows` are written into the buffer `past`, from `at` on."""
    node = helper.make_node("TensorScatter", ["past", "rows", "at"], ["present"], axis=2)
    return model(node, opset=24, element=element, whole={"at": TensorProto.INT64})
