"""onnxruntime: TensorScatter takes a buffer of no rows. A choice.

CACHE-3, by bounded max_len=1: open B max_len=0. The buffer is an array of the caller, and one of no rows
is an array like others. So it is for GroupQueryAttention with one buffer for past and present.
"""

import sys

import numpy as np
import onnx
import onnxruntime

text = "g (float[a,b,c,d] past, float[e,f,h,i] rows, int64[j] at) => (float[a,b,c,d] present) { present = "
text += "TensorScatter <axis = 2> (past, rows, at) }"
model = onnx.parser.parse_model(f'<ir_version: 11, opset_import: ["" : 24]> {text}').SerializeToString()
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
empty = np.zeros((1, 1, 0, 8), np.float32)
expected = "an error"
try:
    found = session.run(None, {"past": empty, "rows": empty, "at": np.zeros(1, np.int64)})[0]
    seen = f"taken; {found.shape} comes back"
except RuntimeError:
    seen = expected
print(f"onnxruntime {onnxruntime.__version__}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
