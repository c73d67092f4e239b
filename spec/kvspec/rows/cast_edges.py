"""Edges of casts: the f32 values at which a cast to f16 or bf16 changes its behaviour."""

from __future__ import annotations

import numpy as np

from kvspec.geometry import Array

F16 = (
    0x33000000,  # half the least subnormal: a tie that goes down to zero
    0x33800000,  # the least subnormal
    0x33C00000,  # a tie that goes up
    0x387FC000,  # the largest subnormal
    0x387FE000,  # the tie between it and the least normal number
    0x38800000,  # the least normal number
    0x3F801000,  # a tie just above 1, that goes down
    0x3F803000,  # the next one, that goes up
    0x477FE000,  # the largest finite number, 65504
    0x477FF000,  # 65520, a tie that goes to infinity
    0x47800000,  # 65536
)
"""Bits of f32 values that matter to a cast to f16."""

BF16 = (
    0x00008000,  # half the least subnormal
    0x00010000,  # the least subnormal
    0x00018000,  # a tie that goes up
    0x007F0000,  # the largest subnormal
    0x007F8000,  # the tie between it and the least normal number
    0x00800000,  # the least normal number
    0x3F808000,  # a tie just above 1, that goes down
    0x3F818000,  # the next one, that goes up
    0x7F7F0000,  # the largest finite number
    0x7F7F8000,  # a tie that goes to infinity
)
"""Bits of f32 values that matter to a cast to bf16."""

BOTH = (
    0x00000000,  # zero
    0x3F800000,  # 1
    0x7F7FFFFF,  # the largest f32
    0x7F800000,  # infinity; next to it a NaN whose payload no narrower dtype can hold
    0x7FBFFFFF,  # a signalling NaN
    0x7FC00000,  # a quiet NaN
    0x7FFFFFFF,  # the NaN that a sum would carry over into the sign
)
"""Bits of f32 values that matter to every cast."""


def _table() -> Array:
    """Build the table: all edges with both their neighbours, then the same values negated."""
    near = {bits + by for bits in (*F16, *BF16, *BOTH) for by in (-1, 0, 1)}
    positive = np.array(sorted(bits for bits in near if 0 <= bits < 1 << 31), np.uint32)
    return np.concatenate([positive, positive | np.uint32(1 << 31)]).view(np.float32)


EDGES = _table()
"""Those values, their neighbours, and all of these negated, as f32."""
EDGES.flags.writeable = False
