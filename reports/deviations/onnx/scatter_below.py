"""onnx: the reference evaluator's TensorScatter writes to places below 0. Unchecked.

COPY-21, by copy capacity=2: copy 1 -1. The operator's text has no such places; the row goes to the last slot.
"""

import sys

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

text = "g (float[a,b,c,d] past, float[a,b,n,d] rows, int64[a] at) => (float[a,b,c,d] present) { present = "
text += "TensorScatter <axis = 2> (past, rows, at) }"
session = ReferenceEvaluator(onnx.parser.parse_model(f'<ir_version: 11, opset_import: ["" : 24]> {text}'))
row, past = np.ones((1, 1, 1, 8), np.float32), np.zeros((1, 1, 2, 8), np.float32)
expected = "an error"
try:
    found = session.run(None, {"past": past, "rows": row, "at": np.array([-1])})[0]
    seen = f"the slots hold {found[0, 0, :, 0].tolist()}"
except (ValueError, IndexError):
    seen = expected
print(f"onnx {onnx.__version__}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
