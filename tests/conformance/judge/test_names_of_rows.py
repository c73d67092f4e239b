"""A kernel that reads the first tile of heads, or of sequences, in the place of all is found at both levels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvconform.bugs.planting import having
from kvconform.judge import trial
from kvref.caches.growing import Growing
from kvspec.contract import Pair, Readable, description
from kvspec.geometry import Array
from kvspec.notation import from_sentence
from kvspec.session.driver import Session

HEADS, SEQUENCES = 1, 0
"""The axes of rows that a tile may be of."""


def reading_the_first_tile(axis: int, tile: int, parts: str) -> Any:
    """The reference, but that heads or sequences from `tile` on are read as those of the first tile."""

    def first(array: Array) -> Array:
        return array.take(np.arange(array.shape[axis]) % tile, axis=axis)

    class Tiled(Growing):
        def read(self, what: Readable) -> Pair | None:
            pair = super().read(what)
            return pair and Pair(*(first(a) if part in parts else a for part, a in zip("kv", pair, strict=True)))

    return having(growing=Tiled)()


@pytest.mark.parametrize("level", ["visible", "storage"])
@pytest.mark.parametrize("fill", ["legible", "bits", "edges", "random"])
@pytest.mark.parametrize("parts", ["k", "v"])
@pytest.mark.parametrize(
    ("axis", "tile", "geometry"),
    [
        (HEADS, 8, "kv_heads=9"),
        (HEADS, 16, "kv_heads=32 k_dim=64 v_dim=64"),
        (HEADS, 64, "kv_heads=128 k_dim=5 v_dim=5"),
        (SEQUENCES, 8, "batch=9"),
        (SEQUENCES, 32, "batch=33 k_dim=192 v_dim=128"),
        (SEQUENCES, 128, "batch=256 kv_heads=1"),
    ],
)
def test_a_kernel_that_reads_the_first_tile_for_all_is_found(
    axis: int, tile: int, geometry: str, parts: str, fill: str, level: Any
) -> None:
    trace = from_sentence(f"growing {geometry}: append 2 fill={fill}; view")
    for adapter, wrong in ((reading_the_first_tile(axis, tile, parts), True), (Reference(), False)):
        about = description(adapter.describe())
        seen = trial.run(trace, Session(adapter, trial.observables(trace, about, level)), about, level)
        assert seen.failed == wrong
