"""What tests of caches on a device share: what an operation costs, and whether memory ran out in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def cost(on: Any, operation: Callable[[], Any]) -> dict[str, int]:
    """What is counted of an operation on a cache, or on an adapter of caches, by name."""
    meter = on.space.runtime.meter
    before = meter.reading()
    operation()
    return dict(meter.since(before))


def raises(do: Callable[[], Any]) -> bool:
    """Whether memory runs out. The error is forgotten, and with it what had been allocated before it."""
    try:
        do()
    except MemoryError:
        return True
    return False
