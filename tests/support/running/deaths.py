"""How a task of a pool may end: the same ways for pools and for hunts."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import time


def die(how: str, size: int) -> int:
    """End as `how` says, if it says how; else give 0. `eats` takes `size` bytes, and gives them if it lives."""
    if how == "exits":
        os._exit(3)
    if how == "faults":
        faulthandler.disable()
        ctypes.string_at(0)  # a real fault: one that is sent comes back from pytest's own handler
    if how == "hangs":
        time.sleep(600)
    if how == "raises":
        raise ValueError("as said")
    return len(bytearray(size)) if how == "eats" else 0
