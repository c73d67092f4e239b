"""onnx: the reference evaluator's TensorScatter casts rows of another type than its buffer. Unchecked.

CACHE-2, by bounded max_len=1: append 1 dtype=bf16. The operator's text has one type for both; the checker
of models would say so, and the evaluator does not look.
"""

import sys

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

text = "g (float16[a,b,c,d] past, float16[e,f,h,i] rows, int64[j] at) => (float16[a,b,c,d] present) { present = "
text += "TensorScatter <axis = 2> (past, rows, at) }"
session = ReferenceEvaluator(onnx.parser.parse_model(f'<ir_version: 11, opset_import: ["" : 24]> {text}'))
row, past = np.full((1, 1, 1, 8), 1e6, np.float32), np.zeros((1, 1, 1, 8), np.float16)
expected = "ValueError"
try:
    found = session.run(None, {"past": past, "rows": row, "at": np.zeros(1, np.int64)})[0]
    seen = f"rows of {row.dtype} in a buffer of {past.dtype} give {found.dtype}; 1e6 became {found.flat[0]}"
except ValueError:
    seen = expected
print(f"onnx {onnx.__version__}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
