"""TVM: a forward pass that finds too few pages counts its rows. After an error.

PAGE-13, by page page_size=2 pages=2: admit; append 3; append 2. The pass raises; the length is then 5, of two
pages. No kernel runs here.
"""

import sys

import numpy as np
import tvm
from tvm_ffi import Shape, convert

call = lambda name: tvm.get_global_func(f"vm.builtin.{name}")  # noqa: E731
done, zero = convert(lambda *_: None), tvm.runtime.tensor(np.zeros((), np.float32))
attend = [["tirx", done]] * 7
sizes = (Shape([8, 2, 8, 2, 0]), Shape([0, 1]), 1, 1, 8, 8, Shape([0]), False, 0, 1.0, 1e4, None, zero)
cache = call("paged_attention_kv_cache_create")(*sizes, done, None, *attend, [], [done], done, done, done, done)
call("kv_state_add_sequence")(cache, 0)
call("kv_state_begin_forward")(cache, Shape([0]), Shape([3]))
expected = "an error, 3 rows"
try:
    call("kv_state_begin_forward")(cache, Shape([0]), Shape([2]))
    seen = "no error"
except Exception:
    seen = f"an error, {call('attention_kv_cache_get_sequence_length')(cache, 0)} rows"
print(f"tvm {tvm.__version__}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
