"""TVM: a tree of tokens that comes in two passes is committed as if it were that of the second. A broken promise.

LAYER-51, by layers of=full: branch 1; branch 2 on=0,0; settle 1. The way to node 1 is nodes 0 and 1. Node 2, which
nobody accepted, stays as a row of the text. No kernel runs here.
"""

import sys

import numpy as np
import tvm
from tvm_ffi import Shape, convert

call = lambda name: tvm.get_global_func(f"vm.builtin.{name}")  # noqa: E731
done, zero = convert(lambda *_: None), tvm.runtime.tensor(np.zeros((), np.float32))
attend = [["tirx", done]] * 7
sizes = (Shape([8, 64, 64, 4, 0]), Shape([0, 1]), 1, 1, 8, 8, Shape([0]), False, 0, 1.0, 1e4, None, zero)


def rows_after(*passes):
    cache = call("paged_attention_kv_cache_create")(*sizes, done, None, *attend, [], [done], done, done, done, done)
    call("kv_state_add_sequence")(cache, 0)
    for parents in passes:
        call("kv_state_begin_forward")(cache, Shape([0]), Shape([len(parents)]), Shape(parents))
        call("kv_state_end_forward")(cache)
    call("attention_kv_cache_commit_accepted_token_tree_nodes")(cache, Shape([0]), Shape([1]))
    return call("attention_kv_cache_get_sequence_length")(cache, 0)


one, two = rows_after([-1, 0, 0]), rows_after([-1], [0, 0])
print(f"tvm {tvm.__version__}\nexpected: {one} rows, as where the tree comes in one pass\nseen:     {two} rows")
sys.exit(one == two)
