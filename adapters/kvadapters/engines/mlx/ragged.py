"""mlx-lm: `BatchKVCache` and `BatchRotatingKVCache` on sequences of unequal lengths, by the calls that its
`BatchGenerator` makes.

It stores padding on the left, but takes blocks with padding on the right. A block is handed over with its rows
first. `prepare` says how much padding is behind them, and `finalize` brings that to the front. So the adapter moves
the columns of a block, and the rows of its mask back. Over a window a block of one column is written round and
round, and takes no padding. Such a block with padding gets columns that nobody owns. So does a block without
columns. Not claimed are padding on the right, `reorder` and `repeat`. Nor are trims by unequal counts, since all
are trimmed alike, and trims over a window. Nor is who owns arrays, since mlx copies what NumPy hands over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from kvadapters.engines.mlx.caches import LENGTH, ROTATES, adapter, to_numpy
from kvadapters.update import UpdateAdapter
from kvspec.contract import Pair
from kvspec.errors import CannotRun, Unsupported
from kvspec.geometry import Array, Config

try:
    import mlx.core as mx
    from mlx_lm.models import cache as caches
except ImportError as e:
    raise CannotRun(f"mlx-lm cannot be imported ({e}); pip install 'kvconform[mlx-lm]'") from e


class Fed(NamedTuple):
    """The last block: what the update returned, and what was known before it."""

    block: Pair
    starts: list[int]
    held: list[int]
    positions: Array
    mask: Array


alone = adapter("growing", "growing", lambda config: caches.KVCache(), **LENGTH)
ring = adapter("rotating", "ring", lambda config: caches.RotatingKVCache(config.window), ROTATES, **LENGTH)
"""Caches of one sequence, which batches are made of; their masks are judged by themselves."""


class RaggedBatch:
    """A batch cache of mlx-lm, and what its last update returned."""

    module: ClassVar[Any] = caches
    """The module that has the caches: mlx-lm's, or that of mlx-vlm."""

    def __init__(self, config: Config) -> None:
        if config.padding != "left":
            raise Unsupported("mlx-lm keeps padding on the left")
        self.config = config
        self._adopt(self._made())

    def _made(self) -> Any:
        return self.module.BatchKVCache([0] * self.config.batch)

    def _adopt(self, cache: Any) -> None:
        self.cache = cache
        self.cache.step = self.config.step
        self._fed: Fed | None = None

    def feed(self, keys: Any, values: Any, lengths: Sequence[int]) -> None:
        """Update with the block, its padding behind the rows."""
        columns, cache = keys.shape[2], self.cache
        keys, values = (self._widened(to_numpy(a), lengths) for a in (keys, values))
        padding = [keys.shape[2] - n for n in lengths]
        if any(padding):
            cache.prepare(lengths=list(lengths), right_padding=padding)
        mask, first = to_numpy(cache.make_mask(keys.shape[2])), np.array(cache.offset.tolist())
        block = [to_numpy(a) for a in cache.update_and_fetch(*(_rows_first(a, padding) for a in (keys, values)))]
        starts = self._starts()
        held = [block[0].shape[2] - start for start in starts]
        if any(padding):
            cache.finalize()
        place = np.arange(columns) - (columns - np.array(lengths))[:, None]
        positions = np.where(place < 0, -1, first[:, None] + place)
        shown = _padding_first(mask, padding)
        self._fed = Fed(Pair(*block), starts, held, positions, shown[:, :, keys.shape[2] - columns :])

    def _starts(self) -> list[int]:
        """The padding on the left of each sequence."""
        starts: list[int] = self.cache.left_padding.tolist()
        return starts

    def _widened(self, block: Array, lengths: Sequence[int]) -> Array:
        """The block as it is handed over."""
        return block

    def trim(self, counts: Sequence[int]) -> None:
        """Trim all by one number."""
        (count,) = set(counts)
        if len(counts) != len(self.sequences()):
            raise ValueError(f"{len(counts)} counts for {len(self.sequences())} sequences")
        self._fed = None
        self.cache.trim(count)

    def filter(self, order: Sequence[int]) -> None:
        """Keep these sequences."""
        self.cache.filter(list(order))
        self._fed = None

    def extend(self, other: RaggedBatch) -> None:
        """Add those of another."""
        self.cache.extend(other.cache)
        self._fed = None

    def join(self, others: Sequence[Any]) -> None:
        """Merge caches of one sequence."""
        self._adopt(type(self.cache).merge([other.cache for other in others]))

    def extract(self, sequence: int, into: Any) -> None:
        """Take out a sequence."""
        into.cache = self.cache.extract(sequence)
        into.cache.step = into.config.step

    def sequences(self) -> list[int]:
        """The offsets: padding was taken off when it was prepared for."""
        offsets: list[int] = self.cache.offset.tolist()
        return offsets

    def read_sequence(self, sequence: int) -> Pair:
        """The rows that would be extracted; none if the cache never had rows."""
        if self.cache.empty():
            return Pair(*(np.empty(self.config.shape(kind, 0)[1:], np.float32) for kind in "kv"))
        alone = self.cache.extract(sequence)
        return Pair(*(to_numpy(a)[0] for a in (alone.keys, alone.values)))

    def positions(self) -> Array | None:
        """Counted on from the offsets before the update, as queries are turned."""
        return None if self._fed is None else self._fed.positions

    def history(self) -> Pair:
        """What the update returned."""
        return self._last.block

    def starts(self) -> list[int]:
        """The padding that stood on the left then."""
        return self._last.starts

    def holds(self) -> list[int]:
        """What stood behind it then; before that nothing that a block had."""
        return self.sequences() if self._fed is None else self._fed.held

    def mask(self) -> Array:
        """The mask that was made before the update."""
        return self._last.mask

    @property
    def _last(self) -> Fed:
        assert self._fed is not None
        return self._fed


class WindowedBatch(RaggedBatch):
    """A rotating one. Once it has turned, newer rows stand before padding: its mask alone knows which is which."""

    def _made(self) -> Any:
        return self.module.BatchRotatingKVCache(self.config.window, [0] * self.config.batch)

    def _starts(self) -> list[int]:
        return [0 if self.cache.rotated else max(0, n) for n in super()._starts()]

    def _widened(self, block: Array, lengths: Sequence[int]) -> Array:
        """Add columns of padding in front: over a window mlx takes padding only in two columns or more."""
        columns = block.shape[2]
        wanted = max(2, columns) if columns != 1 or min(lengths) < 1 else 1
        return np.pad(block, ((0, 0), (0, 0), (wanted - columns, 0), (0, 0)))

    def read_sequence(self, sequence: int) -> Pair:
        """The newest rows of a sequence that is extracted, as many as a next query sees besides its own."""
        seen = min(self.sequences()[sequence], self.config.window - 1)
        return Pair(*(a[:, a.shape[1] - seen :] for a in super().read_sequence(sequence)))


def _rows_first(block: Array, padding: Sequence[int]) -> Any:
    """A block for mlx, its padding moved behind the rows."""
    return mx.array(np.stack([np.roll(a, -n, axis=1) for a, n in zip(block, padding, strict=True)]))


def _padding_first(mask: Array, padding: Sequence[int]) -> Array:
    """The mask of such a block, its queries in the order of the block that was fed."""
    whole = np.broadcast_to(mask, (len(padding), *mask.shape[-3:]))
    return np.stack([np.roll(a, n, axis=1) for a, n in zip(whole, padding, strict=True)])


@dataclass(frozen=True)
class BatchAdapter:
    """Opens batches of unequal lengths, and the caches of one sequence that they are made of."""

    name: str
    alone: UpdateAdapter
    ring: UpdateAdapter
    batch: type[RaggedBatch]
    windowed: type[RaggedBatch]

    def describe(self) -> dict[str, Any]:
        """What the engine has of both."""
        said = self.alone.describe()
        without = ["scribble", "right", "reorder", "repeat", "each", "back", "attendblock", "nan", "checks"]
        own = {"ragged": {"level": "visible", "without": without}}
        chapters = {**said["chapters"], **self.ring.describe()["chapters"], **own}
        return {**said, "name": self.name, "chapters": chapters}

    def to_engine(self, array: Array) -> Any:
        """Make an array of mlx, which caches of one sequence are handed."""
        return self.alone.to_engine(array)

    def from_engine(self, array: Any) -> Array:
        """Give the elements of an array of mlx, which caches of one sequence hand out."""
        return self.alone.from_engine(array)

    def open(self, kind: str, config: Config) -> Any:
        """A fresh cache."""
        if kind == "ragged":
            return (self.batch if config.window is None else self.windowed)(config)
        return (self.alone if kind == "growing" else self.ring).open(kind, config)


ragged = BatchAdapter("mlx-ragged", alone, ring, RaggedBatch, WindowedBatch)
