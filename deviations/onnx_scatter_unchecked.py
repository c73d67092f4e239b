"""onnx 1.23.2: the reference evaluator's TensorScatter takes rows of another type than its buffer, and casts them.
Unchecked.

Shortest trace: bounded max_len=1: append 1 dtype=bf16 (BOUNDED-11). The operator's text has one type for both; the
checker of models would say so, and the evaluator does not look. Status 0 if it still reproduces.
"""

import sys

import numpy as np
from float64 import report, rows
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator
from onnx_nodes import scatter

session = ReferenceEvaluator(scatter(TensorProto.FLOAT16))
row, past = rows(1)[None, None], np.zeros((1, 1, 1, 8), np.float16)
found = session.run(None, {"past": past, "rows": row, "at": np.zeros(1, np.int64)})[0]
text = f"rows of {row.dtype} in a buffer of {past.dtype} give a present of {found.dtype}"
sys.exit(report(found.dtype == np.float16 and found.any(), text))
