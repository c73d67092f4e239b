"""The workloads: each measures one operation of `operations.toml` through the adapter contract."""

from __future__ import annotations

from kvprofile.operation import Operation
from kvprofile.workloads import attention, bucket, cache, copy, layers, page, rope, store
from kvspec.tables import table

PARTS = (cache, copy, store, layers, attention, page, bucket, rope)
WORK = {name: work for part in PARTS for name, work in part.WORK.items()}
OPERATIONS = {
    name: Operation(**vars(WORK[name]), name=name, words=row["words"], needs=tuple(row["needs"]))
    for name, row in table(__name__, "operations").items()
}
"""Every operation by its name."""
