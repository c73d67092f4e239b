"""What is measured, operation by operation, through the contract that every adapter has."""

from __future__ import annotations

from kvconform.profiling.case import Operation
from kvconform.profiling.jobs import attention, cache, copy, store

OPERATIONS: dict[str, Operation] = {
    o.name: o for o in (*cache.OPERATIONS, *copy.OPERATIONS, *store.OPERATIONS, *attention.OPERATIONS)
}
"""Every operation by its name."""
