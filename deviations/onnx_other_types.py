"""onnx 1.23.2: the reference evaluator's Attention takes a past of another type than the rows. Unchecked.

Shortest trace: growing dtype=f32: append 1 dtype=f16 (GROW-10). The operator's text has one type for keys and their
past; the evaluator joins the two arrays, and the present is of the wider type. The checker of models would say so;
the evaluator does not look. Status 0 if it still reproduces.
"""

import sys

import numpy as np
from float64 import report, rows
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx_nodes import model

NAMES = ("Q", "K", "V", "past_key", "past_value")
node = helper.make_node(
    "Attention", [*NAMES[:3], "", *NAMES[3:]], ["Y", "present_key", "present_value"], is_causal=1
)
session = ReferenceEvaluator(model(node, opset=25))
row, past = rows(1)[None, None], rows(2, seed=1)[None, None]
narrow = row.astype(np.float16)
found = session.run(None, dict(zip(NAMES, (narrow, narrow, narrow, past, past), strict=True)))
text = f"rows of {narrow.dtype} behind a past of {past.dtype} give a present of {found[1].dtype}"
sys.exit(report(found[1].shape[2] == 3 and found[1].dtype == np.float32, text))
