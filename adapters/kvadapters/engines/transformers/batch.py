"""Hugging Face transformers: the sequences of a `DynamicCache` put in another order, dropped and repeated, as beam
search does.

Its sequences have one length: what is shorter, callers pad, and keep a mask of. Not claimed: blocks of unequal
lengths, trims by unequal counts and over a window. It has no calls that join sequences or take them out. `update`
returns the tensors of the cache, so that nobody else owns them. Lengths are the caller's: the adapter cuts off what
no sequence owns, and refuses lengths that are none of a block (RAGGED-9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kvadapters.engines.transformers import caches as one
from kvadapters.one_kind import OneKind
from kvadapters.update.claims import FORMS
from kvspec.contract import Pair
from kvspec.errors import CannotRun, Unsupported
from kvspec.geometry import Array, Config

try:
    import torch

    from kvadapters.arrays.torch import from_engine, to_engine
except ImportError as e:
    raise CannotRun(f"torch cannot be imported ({e}); pip install 'kvconform[transformers]'") from e

WITHOUT = ("scribble", "right", "uneven", "zero", "each", "back", "extend", "attendblock", "nan", "checks")
"""What a `DynamicCache` has no calls for, or leaves to its caller."""


class EvenBatch:
    """A cache, how many sequences its caller has in it, and what its last update returned."""

    def __init__(self, config: Config) -> None:
        if config.padding != "left":
            raise Unsupported("transformers pads on the left")
        self.made, self.config, self.batch = self._made(config), config, config.batch
        self._fed: tuple[Pair, Array, int] | None = None
        self._padding = 0

    def _made(self, config: Config) -> one.Cache:
        return one.dynamic(config)

    def _updated(self, keys: Any, values: Any) -> tuple[Any, Any]:
        found: tuple[Any, Any] = self.made.cache.update(keys, values, 0)
        return found

    def _kept(self) -> tuple[Any, Any]:
        layer = self.made.cache.layers[0]
        return layer.keys, layer.values

    def feed(self, keys: Array, values: Array, lengths: Sequence[int]) -> None:
        """Make the mask as a model does, then update. Raises Unsupported for padding, and ValueError for lengths
        that are none of this block: both are the caller's."""
        if len(lengths) != self.batch or not set(lengths) <= set(range(keys.shape[2] + 1)):
            raise ValueError(f"lengths {lengths} of a block of {keys.shape[2]} columns")
        if len(set(lengths)) != 1:
            raise Unsupported("sequences of one length alone")
        first, n = self._length(), lengths[0]
        padding = keys.shape[2] - n
        mask = from_engine(self._mask(n)) if n else np.zeros((1, 1, 0, first), bool)
        rows = self._updated(to_engine(keys[:, :, padding:]), to_engine(values[:, :, padding:]))
        self._fed = Pair(*map(from_engine, rows)), np.pad(mask, ((0, 0), (0, 0), (padding, 0), (0, 0))), first
        self._padding = padding

    def _mask(self, n: int) -> Any:
        made = one.Cache(self.made.cache, self.config.changed(batch=self.batch))
        columns, _ = self.made.cache.get_mask_sizes(n, 0)
        found = one.mask(made, n)
        whole = torch.ones(n, columns, dtype=torch.bool) if found is None else found
        return whole.expand(self.batch, 1, n, columns)

    def trim(self, counts: Sequence[int]) -> None:
        """Crop all by one number."""
        (count,) = set(counts)
        if len(counts) != self.batch:
            raise ValueError(f"{len(counts)} counts for {self.batch} sequences")
        self.made.cache.crop(-count)
        self._fed = None

    def filter(self, order: Sequence[int]) -> None:
        """Keep these."""
        self.made.cache.batch_select_indices(torch.tensor(list(order)))
        self._now(len(order))

    def reorder(self, order: Sequence[int]) -> None:
        """Put the beams in another order."""
        self.made.cache.reorder_cache(torch.tensor(list(order)))
        self._now(len(order))

    def repeat(self, times: int) -> None:
        """Repeat each, side by side."""
        self.made.cache.batch_repeat_interleave(times)
        self._now(self.batch * times)

    def _now(self, batch: int) -> None:
        self.batch, self._fed = batch, None

    def _length(self) -> int:
        return int(self.made.cache.get_seq_length())

    def sequences(self) -> list[int]:
        """All have one length."""
        return [self._length()] * self.batch

    def read_sequence(self, sequence: int) -> Pair:
        """The rows that the layer keeps of a sequence."""
        if not self._length():
            return Pair(*(np.empty(self.config.shape(kind, 0)[1:], np.float32) for kind in "kv"))
        return Pair(*(from_engine(a[sequence]) for a in self._kept()))

    def positions(self) -> Array | None:
        """Counted on from the length before the update."""
        if self._fed is None:
            return None
        _, mask, first = self._fed
        own = np.arange(first, first + mask.shape[2] - self._padding)
        return np.tile(np.pad(own, (self._padding, 0), constant_values=-1), (self.batch, 1))

    def history(self) -> Pair:
        """What the update returned."""
        return self._last[0]

    def starts(self) -> list[int]:
        """There is no padding."""
        return [0] * self.batch

    def holds(self) -> list[int]:
        """What the last update returned of each; before that nothing that a block had."""
        width = self._length() if self._fed is None else self._fed[0][0].shape[2]
        return [width] * self.batch

    def mask(self) -> Array:
        """The mask that was made before the update."""
        return self._last[1]

    @property
    def _last(self) -> tuple[Pair, Array, int]:
        assert self._fed is not None
        return self._fed


def adapter(
    name: str, batch: type[EvenBatch], without: Sequence[str] = (), limits: Mapping[str, Any] | None = None
) -> OneKind:
    """Make the adapter of batches of sequences of one length."""
    said = one.growing.describe() | ({"limits": limits} if limits else {})
    also = {FORMS: {"level": "visible", "with": []}} if limits else {}
    own = {each: said[each] for each in said if each not in ("name", "chapters")}
    return OneKind(f"transformers-{name}", "ragged", batch, {"without": [*WITHOUT, *without]}, own, also)


ragged = adapter("batch", EvenBatch)
