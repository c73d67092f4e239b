"""The rows of the layers of a cache: those that a layer has now, and those of all layers in a snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kvref.abilities.snapshot import Snapshot
from kvref.memory.rows import Rows, count
from kvspec.contract import Pair
from kvspec.geometry import Array, Config


@dataclass
class Kept:
    """The rows of one layer `[1, kv_heads, slots, dim]`: in which slots they lie, at which positions they stand."""

    rows: Rows
    slots: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    kept: int = 0

    def keep(self, which: Sequence[int]) -> None:
        """Keep these of the rows, by their indices; nothing moves."""
        self.slots, self.places = [self.slots[i] for i in which], [self.places[i] for i in which]

    def join(self, new: Pair, first: int) -> None:
        """Put rows behind the others, the first of them at this position."""
        if len(self.slots) < len(self.rows):
            self.rows = self.rows.taken(self.slots)
        self.rows.join(new)
        self.slots = list(range(len(self.rows)))
        self.places += range(first, first + count(new))


class SavedLayers(Snapshot):
    """The rows of all layers, one layer behind the other. For each layer come its positions, and the position from
    which on it has all rows. Layers without rows have their states. `encoded` are the rows of the encoder, if there
    were some."""

    def __init__(
        self,
        config: Config,
        rows: Pair,
        stop: int,
        layers: Sequence[tuple[list[int], int]],
        states: Mapping[int, Array],
        encoded: Pair | None = None,
    ) -> None:
        super().__init__("layers", config, rows, 0, stop)
        self.layers, self.states, self.encoded = layers, states, encoded

    @property
    def nbytes(self) -> int:
        """Bytes of its rows and states; 0 once it is closed."""
        more = *self.states.values(), *(self.encoded or ())
        return 0 if self.gone else super().nbytes + sum(each.nbytes for each in more)

    def put_back(self, number: int, one: Config) -> Kept:
        """Make the rows of a layer with rows anew, in memory of their own."""
        places, kept = self.layers[number]
        first = sum(len(each) for each, _ in self.layers[:number])
        made = Rows(one)
        made.join(Pair(*(a[:, :, first : first + len(places)] for a in self.rows)))
        return Kept(made, list(range(len(places))), list(places), kept)
