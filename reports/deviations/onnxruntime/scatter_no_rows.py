"""onnxruntime: TensorScatter looks at a copy of no rows as at any other. Choice.

COPY-8, by copy capacity=1: copy 0 -1. A copy of no rows changes nothing, wherever it would go; a place below 0, or
rows of other heads, are an error here. So are other heads in onnx's reference evaluator.
"""

import sys

import numpy as np
import onnx
import onnxruntime

text = "g (float[a,b,c,d] past, float[a,e,n,d] rows, int64[a] at) => (float[a,b,c,d] present) { present = "
text += "TensorScatter <axis = 2> (past, rows, at) }"
model = onnx.parser.parse_model(f'<ir_version: 11, opset_import: ["" : 24]> {text}').SerializeToString()
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
past, expected, seen = np.zeros((1, 1, 1, 8), np.float32), ["taken"] * 3, []
for heads, at in ((1, 0), (1, -1), (5, 0)):
    rows = np.zeros((1, heads, 0, 8), np.float32)
    try:
        session.run(None, {"past": past, "rows": rows, "at": np.array([at], np.int64)})
        seen.append("taken")
    except Exception:
        seen.append("an error")
print(f"onnxruntime {onnxruntime.__version__}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
