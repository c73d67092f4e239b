"""mlx-lm 0.32.2: a ring whose update raises has written half of it. A wrong result, if the caller goes on.

Shortest trace: ring window=1: append 1; append 2 v_dim=3; append 1 (RING-13, and RING-1 behind it).
`RotatingKVCache` grows and writes its keys before its values. Where a value of a wrong width raises ValueError,
the key is there already: (1) the storage of the keys has grown and that of the values has not, and the value of
the next right row is lost without a word; (2) on a full ring the oldest key is overwritten and its value is
not. Nothing promises that a cache can be used after an exception; nothing says that it cannot. Status 0 if it
still reproduces.
"""

import sys

import mlx.core as mx
import numpy as np
from float64 import report
from mlx_lm.models.cache import RotatingKVCache


def row(number, count=1, dim=4):
    """Rows of one number, `[1, 1, count, dim]`."""
    return mx.full((1, 1, count, dim), number)


def refused(cache):
    """Whether a row whose value is too wide raises."""
    try:
        cache.update_and_fetch(row(9.0), row(9.0, dim=5))
    except ValueError:
        return True
    return False


growing = RotatingKVCache(max_size=8)
growing.update_and_fetch(row(0.0, count=2), row(0.0, count=2))
raised = refused(growing)
keys, values = growing.update_and_fetch(row(1.0), row(1.0))
lost = raised and (keys.shape[2], values.shape[2]) == (3, 2)

full = RotatingKVCache(max_size=3)
for number in (0.0, 1.0, 2.0):
    full.update_and_fetch(row(number), row(number))
raised = refused(full)
old = [np.array(a)[0, 0, :, 0].tolist() for a in full.keys_and_values()]
mixed = raised and full.offset == 3 and old == [[9.0, 1.0, 2.0], [0.0, 1.0, 2.0]]

message = (
    f"(1) {keys.shape[2]} keys and {values.shape[2]} values after three rows; (2) keys {old[0]}, values {old[1]}"
)
sys.exit(report(lost and mixed, message))
