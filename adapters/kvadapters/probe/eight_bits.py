"""Numbers of eight significant bits, which are exact in bf16 and f16."""

from __future__ import annotations

import math


def eight_bits(x: float) -> float:
    """Round to eight significant bits."""
    mantissa, exponent = math.frexp(x)
    return math.ldexp(round(mantissa * 256), exponent - 8)
