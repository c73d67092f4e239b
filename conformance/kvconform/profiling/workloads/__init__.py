"""The workloads: each measures one operation through the adapter contract."""

from __future__ import annotations

from kvconform.profiling.operation import Operation
from kvconform.profiling.workloads import attention, bucket, cache, copy, page, rope, store

PARTS = (cache, copy, store, attention, page, bucket, rope)
OPERATIONS: dict[str, Operation] = {o.name: o for part in PARTS for o in part.OPERATIONS}
"""Every operation by its name."""
