"""Apache TVM: one sequence of the paged cache of its runtime, as a growing cache whose rows leave it and come back.

What leaves is what a checkpoint exports: a group of pages for each layer, and metadata that say how they lie. Axes,
positions and sizes of a parcel are read from these. Who imports one is handed metadata of the same form. TVM has no
sums of the bytes: those are the adapter's.
"""

from __future__ import annotations

from kvadapters.engines.limits import check_batch
from kvadapters.engines.tvm.checkpoint import PARCELS, exported, imported
from kvadapters.engines.tvm.paged import SAID, Paged
from kvadapters.engines.tvm.runtime import call
from kvadapters.one_kind import OneKind
from kvspec.contract import Lengths, Pair
from kvspec.errors import Unsupported
from kvspec.geometry import Array, Config, valid
from kvspec.parcels import Parcel

ROWS, PAGE = 1024, 4
"""The most rows that a cache is given, and the rows of a page."""


class Sequence:
    """Sequence 0 of a cache of one layer."""

    def __init__(self, config: Config) -> None:
        if not valid(config) or config.window is not None:
            raise ValueError(f"no cache of {config}")
        check_batch(config, 1)
        self.pool, self.given = Paged(config.changed(page_size=PAGE, pages=ROWS // PAGE + 1)), 0
        self.pool.admit()

    def append(self, keys: Array, values: Array) -> None:
        """Do a forward pass."""
        if self.given + keys.shape[2] > ROWS:
            raise Unsupported("more rows than the adapter declares that a cache is given")
        self.pool.append(keys, values)
        self.given += keys.shape[2]

    def read(self, what: str) -> Pair | None:
        """What the call for debugging shows."""
        if what != "view":
            raise Unsupported(f"no {what}")
        return Pair(*(rows[None] for rows in self.pool.read_sequence(0)))

    def lengths(self) -> Lengths:
        """The length of the sequence."""
        return Lengths(self.pool.length(0))

    def rewind(self, to: int) -> None:
        """Pop rows."""
        self.pool.truncate(0, to)

    def free(self) -> None:
        """Clear the cache, and add the sequence again."""
        call("kv_state_clear")(self.pool.cache)
        call("kv_state_add_sequence")(self.pool.cache, 0)

    def pack(self, sequence: int = 0) -> Parcel:
        """Export the group of pages."""
        return exported(self.pool.cache, sequence)

    def unpack(self, *parts: Parcel) -> None:
        """Import a group of pages."""
        (part,) = parts
        imported(self.pool.cache, 0, part)


LIMITS = {"dims": {"equal": True}, "batch": 1, "rows": ROWS}
CLAIM = {"with": ["view", "offset", "rewind", "free", "bits", "zero", "batch"]}
growing = OneKind("tvm-growing", "growing", Sequence, CLAIM, {**SAID, "limits": LIMITS}, {"parcels": PARCELS})
