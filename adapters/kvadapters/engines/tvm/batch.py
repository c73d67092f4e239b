"""Apache TVM: its paged cache of several layers, as a store, and sequences that are forked from it, as its batch.

The store is a sequence. Who scatters its first rows into a place forks it there, as an engine does that finds the
beginning of a request in its cache, and removes what was in the place. A step is one forward pass of all places.
TVM knows no most rows of a sequence, and no most sequences: who serves with it counts both.
"""

from __future__ import annotations

from kvadapters.engines.tvm.paged import SAID, Paged
from kvadapters.engines.tvm.runtime import forward
from kvadapters.one_kind import OneKind
from kvspec.contract import Pair
from kvspec.errors import Unsupported
from kvspec.geometry import Array, Config, fits, valid

ROWS, PAGE, PLACES = 1024, 4, 32
"""The most rows that a store and its batch are given, the rows of a page, and the most sequences of a batch."""

PAGES = ROWS // PAGE + 3 * (PLACES + 2)
"""Those of the rows, and for each sequence one that is not full, one that was copied, one that is being copied."""


class Store:
    """A sequence, and where there is a batch a sequence for each of its places."""

    def __init__(self, config: Config) -> None:
        if not valid(config) or not config.layers or not config.max_len or config.batch != 1:
            raise ValueError(f"no store of {config}")
        self.config = config
        self.pool = Paged(config.changed(page_size=PAGE, pages=PAGES))
        self.own, self.places = self.pool.admit(), list[int]()
        self.given = 0

    def lengths(self) -> list[int]:
        """The length of the sequence, which is that of each layer."""
        return [self.pool.length(self.own)] * (self.config.layers or 0)

    def append(self, keys: Array, values: Array, layer: int | None = None) -> None:
        """Do a forward pass. Raises ValueError for rows that no projection of this model makes."""
        if layer is not None:
            raise Unsupported("a pass is of all layers")
        layers = self.config.layers or 0
        if not (n := keys.shape[2]):
            return
        self._demand(self.config.changed(batch=layers), Pair(keys, values))
        self._count(n)
        forward(self.pool.cache, [self.own], keys.swapaxes(1, 2), values.swapaxes(1, 2))

    def _demand(self, wanted: Config, rows: Pair) -> None:
        if not fits(wanted, rows):
            raise ValueError(f"rows {rows.keys.shape} and {rows.values.shape} of {rows.keys.dtype}")

    def _count(self, n: int) -> None:
        if self.given + n > ROWS:
            raise Unsupported("more rows than the adapter declares that a store is given")
        self.given += n

    def read(self, layer: int) -> Pair:
        """The rows of a layer."""
        return self.pool.read_sequence(self.own, layer)

    def rollback(self, to: int) -> None:
        """Pop rows of the sequence."""
        self._cut(self.own, to)

    def _cut(self, sequence: int, to: int) -> None:
        if to < 0:
            raise ValueError(f"a length of {to}")
        self.pool.truncate(sequence, min(to, self.pool.length(sequence)))

    def reset(self) -> None:
        """Pop all rows."""
        self.rollback(0)

    def batch(self, m: int, most: int | None = None) -> None:
        """Add m sequences, and remove those of the batch before."""
        if m > PLACES:
            raise Unsupported(f"a batch of more than {PLACES}")
        self.free_batch()
        self.places = [self.pool.admit() for _ in range(m)]

    def sequences(self) -> list[int] | None:
        """The length of each place."""
        return [self.pool.length(s) for s in self.places] or None

    def read_sequence(self, layer: int, sequence: int) -> Pair:
        """The rows of a place."""
        return self.pool.read_sequence(self._place(sequence), layer)

    def _place(self, sequence: int) -> int:
        """What TVM knows a place by; places are the adapter's."""
        if sequence not in range(len(self.places)):
            raise ValueError(f"no place {sequence}")
        return self.places[sequence]

    def scatter(self, sequence: int, n: int, layer: int | None = None) -> None:
        """Fork the store, and remove what is in the place."""
        if layer is not None:
            raise Unsupported("a fork is of all layers")
        old = self._place(sequence)
        self.places[sequence] = self.pool.fork(self.own, n) if n else self.pool.admit()
        self.pool.drop(old)

    def step(self, keys: Array, values: Array) -> None:
        """Do a forward pass of all places."""
        if not self.places:
            raise ValueError("no batch")
        layers, m = self.config.layers or 0, len(self.places)
        if keys.ndim != 4 or keys.shape[:2] != (layers, m):
            raise ValueError(f"rows {keys.shape} for {layers} layers and {m} places")
        self._demand(self.config.changed(batch=layers), Pair(*(a.swapaxes(1, 2) for a in (keys, values))))
        self._count(m)
        forward(self.pool.cache, self.places, keys, values)

    def rollback_sequence(self, sequence: int, to: int) -> None:
        """Pop rows of a place."""
        self._cut(self._place(sequence), to)

    def reset_batch(self) -> None:
        """Pop all rows of all places."""
        if not self.places:
            raise ValueError("no batch")
        for place in self.places:
            self._cut(place, 0)

    def free_batch(self) -> None:
        """Remove the sequences."""
        for place in self.places:
            self.pool.drop(place)
        self.places = []


STORE = {"with": ["read", "rollback", "reset"]}
BATCH = {"level": "visible", "with": ["batch", "scatter", "step", "resetbatch", "freebatch", "counts"]}
LIMITS = {"dims": {"equal": True}, "rows": ROWS}
batch = OneKind("tvm-batch", "store", Store, STORE, {**SAID, "limits": LIMITS}, {"batch": BATCH})
