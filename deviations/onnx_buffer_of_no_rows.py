"""onnx 1.23.2: the reference evaluator's TensorScatter takes a buffer of no rows. Choice.

Shortest trace: bounded max_len=1: open B max_len=0 (BOUNDED-12). The buffer is an array of the caller, and one of
no rows is an array like others. Status 0 if it still reproduces.
"""

import sys

import numpy as np
from float64 import report
from onnx.reference import ReferenceEvaluator
from onnx_nodes import scatter

session = ReferenceEvaluator(scatter())
empty = np.zeros((1, 1, 0, 8), np.float32)
found = session.run(None, {"past": empty, "rows": empty, "at": np.zeros(1, np.int64)})[0]
sys.exit(report(found.shape == empty.shape, f"a buffer of no rows was taken, and {found.shape} came back"))
