"""onnxruntime 1.31.1: GroupQueryAttention takes a local window of 0. Unchecked.

Shortest trace: ring window=0: (RING-14). -1 says that there is no window; a session with 0 is made and run without
a word. Status 0 if it still reproduces.
"""

import sys

import numpy as np
import onnxruntime
from float64 import report, rows
from onnx import TensorProto, helper
from onnx_nodes import model

names = ("query", "key", "value", "past_key", "past_value", "seqlens_k", "total")
node = helper.make_node(
    "GroupQueryAttention",
    names,
    ("output", "present_key", "present_value"),
    domain="com.microsoft",
    num_heads=1,
    kv_num_heads=1,
    local_window_size=0,
)
made = model(node, opset=21, whole=dict.fromkeys(names[5:], TensorProto.INT32))
session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
row, past = rows(1)[None], np.zeros((1, 1, 0, 8), np.float32)
lengths = [np.zeros(1, np.int32), np.ones(1, np.int32)]
output = session.run(None, dict(zip(names, (row, row, row, past, past, *lengths), strict=True)))[0]
sys.exit(report(output.shape == (1, 1, 8), f"a window of 0 rows gave an output {output.shape}"))
