"""A ragged cache that hands out more than it must."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from kvadapters.reference import Reference
from kvref.caches.ragged import Ragged
from kvspec.contract import Pair
from kvspec.geometry import Array
from kvworkshop.correct_variants.variant import Variant


class RaggedBlockWithMore(Ragged):
    """A ragged cache whose block has a column in front that nobody owns, and rows of other sequences in padding.
    In its mask, queries that are padding see everything."""

    def history(self) -> Pair:
        """The rows of the next sequence where there is padding, and one column more."""
        owned = [range(start, start + n) for start, n in zip(super().starts(), self.held, strict=True)]
        return Pair(*(_with_more(a, owned) for a in super().history()))

    def starts(self) -> list[int]:
        """Behind the column in front."""
        return [start + 1 for start in super().starts()]

    def mask(self) -> Array:
        """Behind that column as ever; of padding everything."""
        assert self.fed is not None
        seen = np.insert(super().mask(), 0, False, axis=3)
        return np.asarray(seen | (self.fed < 0)[:, None, :, None])


def _with_more(block: Array, owned: list[range]) -> Array:
    """A block in whose padding there are rows of the next sequence, behind a copy of its last column."""
    made = np.concatenate([block[:, :, -1:], block], axis=2)
    for s, own in enumerate(owned):
        padding = [column + 1 for column in range(block.shape[2]) if column not in own]
        made[s][:, padding] = block[(s + 1) % len(owned)][:, :1]
    return made


class MoreThanRagged(Variant):
    """A ragged cache that hands out more than it must, at level visible."""

    caches: ClassVar[dict[str, Any]] = {**Reference.caches, "ragged": RaggedBlockWithMore}
    visible = ("ragged",)
