"""openvino: with one thread a call that fails raises nothing, and leaves states of no sequence. Wrong result.

CACHE-2, by a key of 5 elements where 8 belong. With more threads it raises an error.
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
said = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
layer = ov.Core().compile_model(model, "CPU", said).create_infer_request()
row = np.ones((1, 1, 1, 8), np.float32)
expected = "an error"
try:
    layer.infer([row, row[..., :5], row, np.zeros(1, np.int32)])
    seen = f"taken; the shape of the state is {list(layer.query_state()[0].state.shape)}"
except RuntimeError:
    seen = expected
print(f"openvino {ov.__version__.partition('-')[0]}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
