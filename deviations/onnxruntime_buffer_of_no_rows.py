"""onnxruntime 1.31.1: TensorScatter takes a buffer of no rows. Choice.

Shortest trace: bounded max_len=1: open B max_len=0 (BOUNDED-12). The buffer is an array of the caller, and one of
no rows is an array like others. So it is for GroupQueryAttention with one buffer for past and present. Status 0 if
it still reproduces.
"""

import sys

import numpy as np
import onnxruntime
from float64 import report
from onnx import TensorProto, helper

node = helper.make_node("TensorScatter", ["past", "rows", "at"], ["present"], axis=2)
types = {"at": TensorProto.INT64}
inputs, outputs = (
    [helper.make_tensor_value_info(name, types.get(name, TensorProto.FLOAT), None) for name in names]
    for names in (node.input, node.output)
)
graph = helper.make_graph([node], "one node", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
empty = np.zeros((1, 1, 0, 8), np.float32)
found = session.run(None, {"past": empty, "rows": empty, "at": np.zeros(1, np.int64)})[0]
sys.exit(report(found.shape == empty.shape, f"a buffer of no rows was taken, and {found.shape} came back"))
