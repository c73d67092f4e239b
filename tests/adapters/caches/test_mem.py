"""What a cache on a device says it holds and plans, against what its runtime has allocated at every moment."""

from __future__ import annotations

import gc
import random
from typing import Any

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvgpu.adapter import Caches
from kvgpu.runtime import Block
from kvspec.contract import Pair
from kvspec.errors import Refused
from kvspec.geometry import DTYPES, Config
from support.device.devices import adapter

CONFIGS = {
    "growing": Config(batch=2, step=3),
    "ring": Config(batch=2, window=4, step=4),
}


class Watched:
    """A runtime that notes the most bytes that were allocated at once."""

    def __init__(self, real: Any) -> None:
        self.real, self.most = real, 0

    def allocate(self, nbytes: int) -> Block:
        block: Block = self.real.allocate(nbytes)
        self.most = max(self.most, self.real.meter.live_bytes)
        return block

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


def _rows(config: Config, n: int) -> Pair:
    return Pair(*(np.ones(config.shape(kind, n), DTYPES[config.dtype]) for kind in "kv"))


def _beside(cache: Any) -> int:
    """Bytes of its block that are no rows: guard bands and what is rounded up."""
    rows = cache.store.rows
    return 0 if rows is None else int(rows.block.nbytes - rows.nbytes)


@pytest.mark.parametrize("kind", CONFIGS)
def test_held_and_planned_bytes_are_what_is_allocated(kind: str) -> None:
    runtime, config, pick = Watched(adapter().runtime), CONFIGS[kind], random.Random(kind)
    caches = Caches("watched", runtime, checks=False)  # type: ignore[arg-type]
    caches.space.scratch("stage", 1 << 16), caches.space.scratch("other", 1 << 16)
    for _ in range(20):
        gc.collect()
        cache: Any = caches.open(kind, config)
        before = runtime.meter.live_bytes
        for _ in range(12):
            n = pick.choice((0, 1, 1, 2, 5))
            (held, most), old = cache.plan(n), _beside(cache)
            runtime.most = runtime.meter.live_bytes
            cache.append(*_rows(config, n))
            assert cache.held() == held == runtime.meter.live_bytes - before - _beside(cache)
            assert runtime.most - before == most + _beside(cache) + (old if most > held else 0)
        cache.free()
        assert cache.held() == 0 and runtime.meter.live_bytes == before


def test_a_store_holds_its_layers_and_its_batch() -> None:
    runtime, config = adapter().runtime, Config(layers=2, max_len=4)
    gc.collect()
    before = runtime.meter.live_bytes
    store: Any = adapter().open("store", config)
    blocks = [store.layers]
    for m in (0, 2, 1, 3):
        if m:
            store.batch(m)
            blocks = [store.layers, store.batched.memory]
        rows = sum(b.rows.nbytes for b in blocks)
        assert store.held() == rows <= runtime.meter.live_bytes - before
    store.free_batch()
    assert store.held() == store.layers.rows.nbytes == 2 * 4 * config.row_bytes


def test_what_fits_is_what_the_reference_says() -> None:
    pick, ours = random.Random(0), Reference()
    for _ in range(3000):
        sizes = {
            f: pick.choice((0, 1, 2, 3, 7, 64, 1 << 16))
            for f in ("layers", "max_len", "kv_heads", "k_dim", "v_dim")
        }
        config = Config(**sizes, dtype=pick.choice(list(DTYPES)))
        free = pick.choice((0, 1, 3_500_000_000, pick.randrange(1 << 33), pick.randrange(1 << 62)))
        reserve, most = pick.choice((None, 0, 1, free, free + 1)), pick.choice((None, -1, 0, 1, 5, 33))
        kind = pick.choice(("store",) * 9 + ("ring",))
        assert _answer(adapter(), kind, config, free, reserve, most) == _answer(
            ours, kind, config, free, reserve, most
        )


def _answer(caches: Any, *question: Any) -> Any:
    try:
        return caches.fit(*question)
    except Refused as e:
        return e.clause, str(e)


def test_no_product_is_beyond_64_bits() -> None:
    largest = Config(layers=1 << 16, max_len=1 << 16, kv_heads=1 << 16, k_dim=1 << 16, v_dim=1 << 16, dtype="f32")
    for caches in (adapter(), Reference()):
        assert caches.fit("store", largest, (1 << 64) - 1, 0, None) == (1, True)
