"""onnxruntime: Attention on buffers of TensorScatter sees values that were never written. Unchecked.

CACHE-2, by bounded max_len=1: append 1 values=0. Keys and values are written by two nodes, and nobody
compares how many rows each was given; a value that was not written is what the buffer held. So it is in
onnx's reference evaluator.
"""

import sys

import numpy as np
import onnx
import onnxruntime

inputs = ", ".join(f"float[1,1,n{i},8] {name}" for i, name in enumerate(("q", "k", "v", "key", "value")))
calls = "keys = TensorScatter <axis = 2> (key, k, at) values = TensorScatter <axis = 2> (value, v, at) "
calls += "y = Attention <is_causal = 1> (q, keys, values, , , , valid)"
text = f"g ({inputs}, int64[1] at, int64[1] valid) => (float[1,1,m,8] y) {{ {calls} }}"
model = onnx.parser.parse_model(f'<ir_version: 11, opset_import: ["" : 24]> {text}').SerializeToString()
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
row, at = np.ones((1, 1, 1, 8), np.float32), np.zeros(1, np.int64)
expected = "an error"
try:
    given = {"q": row, "k": row, "v": row[:, :, :0], "key": row, "value": row * 7, "at": at, "valid": at + 1}
    seen = f"one key, no value: the output is {session.run(None, given)[0].flat[0]}, which the buffer held"
except RuntimeError:
    seen = expected
print(f"onnxruntime {onnxruntime.__version__}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
