"""openvino: a state of f32 that is set has lost its subnormal numbers. Unchecked.

CACHE-5. Rows that are appended keep them.
"""

import sys

import numpy as np
import openvino as ov
from openvino import opset6
from openvino import opset13 as ops

empty, past = np.zeros((1, 1, 0, 8), np.float32), ov.PartialShape([-1, 1, -1, 8])
q, k, v = (ops.parameter([-1, 1, -1, 8], np.float32) for _ in "qkv")
beam = ops.parameter([-1], np.int32)
reads = [opset6.read_value(ops.constant(empty), name, np.float32, past) for name in "kv"]
rows = [ops.concat([ops.gather(read, beam, np.int64(0)), x], 2) for read, x in zip(reads, (k, v), strict=True)]
out = ops.result(ops.scaled_dot_product_attention(q, *rows, causal=False))
model = ov.Model([out], [opset6.assign(x, name) for x, name in zip(rows, "kv", strict=True)], [q, k, v, beam])
said = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
layer = ov.Core().compile_model(model, "CPU", said).create_infer_request()
row = np.full((1, 1, 1, 8), 2.0**-140, np.float32)
layer.infer([row, row, row, np.zeros(1, np.int32)])
state = layer.query_state()[0]
kept = bool((state.state.data == row).all())
state.state = ov.Tensor(row)
expected, seen = "True True", f"{kept} {bool((state.state.data == row).all())}"
print(f"openvino {ov.__version__.partition('-')[0]}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
