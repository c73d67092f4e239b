"""Parcels of engines that hand their rows on: what `from_update` makes of two functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kvadapters.update import UpdateCache, from_update
from kvspec.geometry import Config
from kvspec.parcels import Parcel
from support.engines.update_engines import WindowCache

CONFIG = Config(kv_heads=1, k_dim=2, v_dim=1)


class Hands(WindowCache):
    """Keeps all rows, and is made of some."""

    WIDER = 1 << 20

    def __init__(self) -> None:
        super().__init__(1)

    def made(self, *rows: Any) -> None:
        self.rows, self.offset = list(rows), rows[0].shape[2]


def adapter(**functions: Any) -> Any:
    return from_update(
        "hands",
        kind="growing",
        make=lambda config: Hands(),
        update=lambda cache, keys, values: cache.update_and_fetch(keys, values),
        length=lambda cache: cache.offset,
        **functions,
    )


ADAPTER = adapter(pack=lambda c: tuple(c.rows), unpack=lambda c, keys, values: c.made(keys, values))


def rows(n: int) -> tuple[Any, Any]:
    return tuple(np.arange(n * dim, dtype=np.float16).reshape(1, 1, n, dim) for dim in (2, 1))


def opened(n: int) -> UpdateCache:
    cache: UpdateCache = ADAPTER.open("growing", CONFIG)
    cache.append(*rows(n))
    return cache


def packed(cache: UpdateCache) -> Parcel:
    return cache.pack()


def test_parcels_are_claimed_where_rows_go_out_and_come_in() -> None:
    assert ADAPTER.describe()["chapters"]["parcels"] == {"level": "visible", "with": ["pack", "unpack"]}
    assert "parcels" not in adapter(pack=lambda c: tuple(c.rows)).describe()["chapters"]


@pytest.mark.parametrize("n", [0, 3])
def test_what_is_packed_is_what_another_cache_holds(n: int) -> None:
    parcel, other = packed(opened(n)), opened(1)
    other.unpack(parcel)
    assert (parcel.offset, parcel.positions, other.lengths().offset) == (n, [*range(n)], n)
    assert [a.tobytes() for a in packed(other).rows()] == [a.tobytes() for a in rows(n)]


def test_rows_of_another_geometry_and_damage_are_refused() -> None:
    other = ADAPTER.open("growing", CONFIG.changed(kv_heads=2))
    with pytest.raises(ValueError, match="geometry"):
        other.unpack(packed(opened(1)))
    with pytest.raises(ValueError, match="bytes"):
        opened(2).unpack(packed(opened(2)).carried("BHPND", 0, cut=1))
