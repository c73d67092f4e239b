"""What replaying a trace may cost: its file can come from anywhere, and must not make the reader allocate at will.

Counted from above, before anything is replayed, with every refusal taken for granted to be none.
"""

from __future__ import annotations

from dataclasses import dataclass

from kvspec.errors import BadInput
from kvspec.geometry import Config
from kvspec.refusals import valid

LARGEST_BYTES = 64 << 20
"""Bytes of rows that caches may be handed or set aside room for, all together."""
LARGEST_ROWS = 1 << 20
"""Rows that a trace may append, counted for each head of each sequence."""
LARGEST_SAVED = 256 << 20
"""Bytes that snapshots may hold, all together."""
LARGEST_LOOK = 1 << 22
"""Pairs of a query and a row that one step may have to look at."""

BASE = 128
"""Digits that one element of a legible row can be."""


def largest(dim: int) -> int:
    """How many serials rows of this dimension can tell apart."""
    return BASE ** (1 if dim < 4 else 2 if dim < 5 else 3)


@dataclass
class Budget:
    """What a trace has spent so far."""

    bytes: int = 0
    rows: int = 0
    saved: int = 0
    positions: int = 0
    queries: int = 0
    batch: int = 1

    def open(self, config: Config, where: str) -> None:
        """A cache: it sets aside one step of rows at the most beyond what it is handed."""
        if not valid(config):
            return
        self.batch = max(self.batch, config.batch)
        self.bytes += min(config.step, config.window or config.step) * config.row_bytes
        self._within(where)

    def append(self, config: Config, rows: Config, n: int, where: str) -> None:
        """So many rows of some geometry for a cache of this config."""
        self.bytes += n * rows.row_bytes
        self.rows += n * rows.batch * rows.kv_heads
        self.positions += n
        self.queries = max(self.queries, n)
        self._within(where)
        self.look(1, where)
        dim = min(config.k_dim, config.v_dim)
        if valid(config) and self.positions > largest(dim):
            raise BadInput(f"{where}: rows of {dim} elements tell only {largest(dim)} apart; it appends more")

    def save(self, where: str) -> None:
        """A snapshot: no larger than all that was appended."""
        self.saved += self.bytes
        if self.saved > LARGEST_SAVED:
            raise BadInput(f"{where}: the snapshots of the trace may hold more than {LARGEST_SAVED} bytes")

    def look(self, heads: int, where: str) -> None:
        """What each query of an append sees, in so many heads."""
        if self.batch * heads * self.queries * self.positions > LARGEST_LOOK:
            raise BadInput(f"{where}: queries, rows, batch and heads make more than {LARGEST_LOOK} pairs")

    def _within(self, where: str) -> None:
        if self.bytes > LARGEST_BYTES:
            raise BadInput(f"{where}: the trace needs more than {LARGEST_BYTES} bytes of rows")
        if self.rows > LARGEST_ROWS:
            raise BadInput(f"{where}: the trace appends more than {LARGEST_ROWS} rows, heads and sequences counted")
