"""onnxruntime 1.31.1: Attention on buffers of TensorScatter sees values that were never written. Unchecked.

Shortest trace: bounded max_len=1: append 1 values=0 (BOUNDED-11). Keys and values are written by two nodes, and
nobody compares how many rows each was given; a value that was not written is what the buffer held. So it is in
onnx's reference evaluator. Status 0 if it still reproduces.
"""

import sys

import numpy as np
import onnxruntime
from float64 import report, rows
from onnx import TensorProto, helper
from onnx_nodes import model

write = [helper.make_node("TensorScatter", [f"past_{n}", n, "at"], [f"new_{n}"], axis=2) for n in ("key", "value")]
inputs = ("query", "new_key", "new_value", "", "", "", "valid")
attend = helper.make_node("Attention", inputs, ["output"], is_causal=1)
made = model(*write, attend, opset=24, whole=dict.fromkeys(("at", "valid"), TensorProto.INT64))
session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
names = ("query", "key", "value", "past_key", "past_value", "at", "valid")
row, buffer = rows(1)[None, None], np.zeros((1, 1, 1, 8), np.float32)
arrays = (row, row, row[:, :, :0], buffer, buffer + 7, np.zeros(1, np.int64), np.ones(1, np.int64))
found = session.run(["output"], dict(zip(names, arrays, strict=True)))[0]
sys.exit(
    report(np.allclose(found, 7), f"one key and no value: the output is {found.ravel()[0]}, what the buffer held")
)
