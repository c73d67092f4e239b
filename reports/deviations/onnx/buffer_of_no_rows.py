"""onnx: the reference evaluator's TensorScatter takes a buffer of no rows. A choice.

CACHE-3, by bounded max_len=1: open B max_len=0. The buffer is an array of the caller, and one of no rows
is an array like others.
"""

import sys

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

text = "g (float[a,b,c,d] past, float[e,f,h,i] rows, int64[j] at) => (float[a,b,c,d] present) { present = "
text += "TensorScatter <axis = 2> (past, rows, at) }"
session = ReferenceEvaluator(onnx.parser.parse_model(f'<ir_version: 11, opset_import: ["" : 24]> {text}'))
empty = np.zeros((1, 1, 0, 8), np.float32)
expected = "ValueError"
try:
    found = session.run(None, {"past": empty, "rows": empty, "at": np.zeros(1, np.int64)})[0]
    seen = f"taken; {found.shape} comes back"
except ValueError:
    seen = expected
print(f"onnx {onnx.__version__}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
