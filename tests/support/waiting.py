"""Waits for what happens in other processes."""

from __future__ import annotations

import time
from collections.abc import Callable

LONGEST = 60.0
"""Seconds after which it is not going to happen, on the busiest machine too."""


EACH = 0.02
"""Seconds between two looks."""


def soon(holds: Callable[[], object], seconds: float = LONGEST) -> bool:
    """Wait until it holds; whether it did. What held for a moment counts. Looks are counted, and no clock is read:
    a machine that was paused for a minute has not waited."""
    for _ in range(round(seconds / EACH)):
        if holds():
            return True
        time.sleep(EACH)
    return bool(holds())
