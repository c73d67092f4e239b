"""TVM: a fork that finds no page for its copy leaves pages that nobody gives back. After an error.

PAGE-17, by page page_size=2 pages=2: admit; append 3; fork 0 3; drop 0. The fork raises; it has put rows of the
other sequence into a block of two owners, of whom there is one. No kernel runs here.
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
expected = "an error; 2 of 2 pages are free without sequences"
try:
    call("kv_state_fork_sequence")(cache, 0, 1, 3)
    said = "no error"
except Exception:
    said = "an error"
call("kv_state_remove_sequence")(cache, 0)
free = call("attention_kv_cache_get_num_available_pages")(cache)
seen = f"{said}; {free} of 2 pages are free without sequences"
print(f"tvm {tvm.__version__}\nexpected: {expected}\nseen:     {seen}")
sys.exit(seen == expected)
