"""onnx: the evaluator's Attention and TensorScatter raise at no rows whose width is another one. Unchecked.

CACHE-1, by max_len=1: append 0 k_dim=5. No rows change nothing, whatever their width; those of the width of what is
there are taken.
"""

import sys

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

attend = "float[a,b,c,d] past) => (float[a,b,c,d] k) { Y, k, v = Attention (K, K, K, , past, past) }"
write = "float[a,b,c,d] past, int64[e] at) => (float[a,b,c,d] k) { k = TensorScatter <axis = 2> (past, K, at) }"
head = '<ir_version: 11, opset_import: ["" : 24]> g (float[a,b,n,w] K, '
past, at, expected, seen = np.zeros((1, 1, 1, 8), np.float32), {"at": np.zeros(1, np.int64)}, ["1 rows"] * 4, []
for width in (8, 5):
    arrays = {"K": np.zeros((1, 1, 0, width), np.float32), "past": past}
    for text, more in ((attend, {}), (write, at)):
        try:
            present = ReferenceEvaluator(onnx.parser.parse_model(head + text)).run(None, arrays | more)[0]
            seen.append(f"{present.shape[2]} rows")
        except ValueError:
            seen.append("ValueError")
print(f"onnx {onnx.__version__}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
