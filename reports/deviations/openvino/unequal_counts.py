"""openvino: keys and values of unequal counts write behind its arrays, and the process dies. Unchecked.

CACHE-2, by append 1 values=100. The calls are made in a process of their own. With no values nothing is written.
"""

import os
import sys
from contextlib import suppress

import numpy as np
import openvino as ov

ops, past = ov.opset13, ov.PartialShape([-1, 1, -1, 16])
empty, row = np.zeros((1, 1, 0, 16), np.float32), np.ones((1, 1, 1, 16), np.float32)
q, k, v = (ops.parameter([-1, 1, -1, 16], np.float32) for _ in "qkv")
beam = ops.parameter([-1], np.int32)
reads = [ov.opset6.read_value(ops.constant(empty), name, np.float32, past) for name in "kv"]
rows = [ops.concat([ops.gather(read, beam, np.int64(0)), x], 2) for read, x in zip(reads, (k, v), strict=True)]
out = ops.result(ops.scaled_dot_product_attention(q, *rows, causal=False))
model = ov.Model([out], [ov.opset6.assign(x, name) for x, name in zip(rows, "kv", strict=True)], [q, k, v, beam])
if not (child := os.fork()):
    for n in (1, 100) * 20:
        if n == 1:
            layer = ov.Core().compile_model(model, "CPU").create_infer_request()
        with suppress(RuntimeError):
            layer.infer([row, row, row.repeat(n, 2), np.zeros(1, np.int32)])
    os._exit(0)
seen = "the process dies" if os.WIFSIGNALED(os.waitpid(child, 0)[1]) else "an error"
print(f"openvino {ov.__version__.partition('-')[0]}\nexpected: an error\nseen:     {seen}")
sys.exit(seen == "an error")
