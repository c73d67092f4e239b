"""openvino: a state of 8 bits that is read and set has other rows than before. Unchecked.

ROW-5. OpenVINO GenAI drops rows so: it reads a state, cuts and sets it. What was read is encoded anew.
"""

import sys

import numpy as np
import openvino as ov
from openvino import opset6
from openvino import opset13 as ops

empty, past = np.zeros((1, 1, 0, 16), np.float32), ov.PartialShape([-1, 1, -1, 16])
q, k, v = (ops.parameter([-1, 1, -1, 16], np.float32) for _ in "qkv")
beam = ops.parameter([-1], np.int32)
reads = [opset6.read_value(ops.constant(empty), name, np.float32, past) for name in "kv"]
rows = [ops.concat([ops.gather(read, beam, np.int64(0)), x], 2) for read, x in zip(reads, (k, v), strict=True)]
out = ops.result(ops.scaled_dot_product_attention(q, *rows, causal=False))
model = ov.Model([out], [opset6.assign(x, name) for x, name in zip(rows, "kv", strict=True)], [q, k, v, beam])
said = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "u8"}
layer = ov.Core().compile_model(model, "CPU", said).create_infer_request()
new = np.random.default_rng(0).standard_normal((1, 1, 6, 16)).astype(np.float32)
layer.infer([new, new, new, np.zeros(1, np.int32)])
state = layer.query_state()[0]
before = np.array(state.state.data)
state.state = ov.Tensor(before)
expected, seen = "0 of 96 elements changed", f"{(before != state.state.data).sum()} of 96 elements changed"
print(f"openvino {ov.__version__.partition('-')[0]}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
