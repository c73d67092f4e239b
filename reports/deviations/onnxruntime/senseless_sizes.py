"""onnxruntime: GroupQueryAttention takes a local window of 0. Unchecked.

CACHE-3, by ring window=0. -1 says that there is no window; a session with 0 is made and run.
"""

import sys

import numpy as np
import onnx
import onnxruntime

names = ("query", "key", "value", "past_key", "past_value", "seqlens_k", "total")
sizes = {"num_heads": 1, "kv_num_heads": 1, "local_window_size": 0}
node = onnx.helper.make_node("GroupQueryAttention", names, ["y", "k", "v"], domain="com.microsoft", **sizes)
types = [onnx.TensorProto.FLOAT] * 5 + [onnx.TensorProto.INT32] * 2
values = [
    onnx.helper.make_tensor_value_info(n, t, None) for n, t in zip((*names, *"ykv"), [*types, 1, 1, 1], strict=True)
]
opsets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("com.microsoft", 1)]
graph = onnx.helper.make_graph([node], "g", values[:7], values[7:])
model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
expected, row, past = "an error", np.ones((1, 1, 8), np.float32), np.zeros((1, 1, 0, 8), np.float32)
try:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    given = (row, row, row, past, past, np.zeros(1, np.int32), np.ones(1, np.int32))
    seen = f"taken; the output is {session.run(None, dict(zip(names, given, strict=True)))[0].flat[0]}"
except RuntimeError:
    seen = expected
print(f"onnxruntime {onnxruntime.__version__}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
