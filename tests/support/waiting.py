"""Waits for what happens in other processes."""

from __future__ import annotations

import time
from collections.abc import Callable

LONGEST = 60.0
"""Seconds after which it is not going to happen, on the busiest machine too."""


def soon(holds: Callable[[], object], seconds: float = LONGEST) -> bool:
    """Wait until it holds; whether it did."""
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.02)
    return bool(holds())
