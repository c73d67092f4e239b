"""onnx: the reference evaluator's Attention takes a past of another type than the rows. Unchecked.

CACHE-2, by growing dtype=f32: append 1 dtype=f16. The operator's text has one type for keys and their past;
the evaluator joins the two arrays, and the present is of the wider type. The checker of models would say so.
"""

import sys

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

arrays = "float[1,1,q,8] Q, float[1,1,n,8] K, float[1,1,n,8] V, float[1,1,p,8] past_key, float[1,1,p,8] past_value"
call = "Y, key, value = Attention <is_causal = 1> (Q, K, V, , past_key, past_value)"
text = f"g ({arrays}) => (float[1,1,q,8] Y, float[1,1,m,8] key, float[1,1,m,8] value) {{ {call} }}"
session = ReferenceEvaluator(onnx.parser.parse_model(f'<ir_version: 11, opset_import: ["" : 25]> {text}'))
row, past = np.ones((1, 1, 1, 8), np.float16), np.ones((1, 1, 2, 8), np.float32)
expected = "ValueError"
try:
    found = session.run(None, {"Q": row, "K": row, "V": row, "past_key": past, "past_value": past})
    seen = f"rows of {row.dtype} behind a past of {past.dtype} give a present of {found[1].dtype}"
except ValueError:
    seen = expected
print(f"onnx {onnx.__version__}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
