"""Apache TVM: its paged cache of several layers, as a store, and sequences that are forked from it, as its batch.

The store is a sequence. Who scatters its first rows into a place forks it there, as an engine does that finds the
beginning of a request in its cache, and removes what was in the place. A step is one forward pass of all places.
TVM knows no most rows of a sequence, and no most sequences: who serves with it counts both.
"""

from __future__ import annotations

from kvadapters.batched import Batched
from kvadapters.engines.tvm.paged import SAID, Paged
from kvadapters.engines.tvm.runtime import forward
from kvadapters.one_kind import OneKind
from kvspec.contract import Pair
from kvspec.errors import Unsupported
from kvspec.geometry import Array, Config

ROWS, PAGE, PLACES = 1024, 4, 32
"""The most rows that a store and its batch are given, the rows of a page, and the most sequences of a batch."""

PAGES = ROWS // PAGE + 3 * (PLACES + 2)
"""Those of the rows, and for each sequence one that is not full, one that was copied, one that is being copied."""

Numbers = list[int]
"""What TVM knows sequences by."""


class Store(Batched):
    """A sequence, and where there is a batch a sequence for each of its places."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.pool = Paged(config.changed(page_size=PAGE, pages=PAGES))
        self.one, self.given = self.made(1), 0

    def made(self, m: int) -> Numbers:
        """Add sequences."""
        if m > PLACES:
            raise Unsupported(f"a batch of more than {PLACES}")
        return [self.pool.admit() for _ in range(m)]

    def counted(self, of: Numbers) -> list[int]:
        """Their lengths."""
        return [self.pool.length(sequence) for sequence in of]

    def forward(self, of: Numbers, keys: Array, values: Array) -> None:
        """Do a forward pass, of the rows of one sequence behind those of the one before."""
        layers, m, heads, n, dim = keys.shape
        if self.given + m * n > ROWS:
            raise Unsupported("more rows than the adapter declares that a store is given")
        self.given += m * n
        flat = (a.swapaxes(2, 3).reshape(layers, m * n, heads, dim) for a in (keys, values))
        forward(self.pool.cache, of, *flat)

    def rows(self, of: Numbers, layer: int, sequence: int) -> Pair:
        """What the call for debugging shows."""
        return self.pool.read_sequence(of[sequence], layer)

    def cut(self, of: Numbers, sequence: int, to: int) -> None:
        """Pop rows."""
        self.pool.truncate(of[sequence], to)

    def copied(self, sequence: int, n: int) -> None:
        """Fork the store, and remove what is in the place."""
        place, places = self.place(sequence), self.there()
        old, places[place] = places[place], self.pool.fork(self.one[0], n) if n else self.pool.admit()
        self.pool.drop(old)

    def free_batch(self) -> None:
        """Remove the sequences."""
        for sequence in self.many or ():
            self.pool.drop(sequence)
        super().free_batch()


STORE = {"with": ["read", "rollback", "reset"]}
BATCH = {"level": "visible", "with": ["batch", "scatter", "step", "resetbatch", "freebatch", "counts"]}
LIMITS = {"dims": {"equal": True}, "rows": ROWS, "batch": PLACES}
batch = OneKind("tvm-batch", "store", Store, STORE, {**SAID, "limits": LIMITS}, {"batch": BATCH})
