"""Rows in a ring or in pages, and queries, on which attention kernels are tried element by element."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from kvgpu.caches.attention import Pages, Positions
from kvgpu.memory.device_arrays import placed
from kvgpu.memory.layout import Place
from kvgpu.runtime import Runtime
from kvspec.geometry import DTYPES, Array


@dataclass
class Case:
    """Rows of `entries` in a ring of `wrap` slots that begins at slot `base`, `held` of them from position `first`
    on, the oldest in slot `turn` of the ring; `count` queries of each head. All other rows are NaN."""

    dtype: str = "f32"
    k_dim: int = 16
    v_dim: int = 16
    group: int = 1
    kv_heads: int = 1
    entries: int = 1
    held: int = 10
    wrap: int = 10
    base: int = 0
    turn: int = 0
    spare: int = 0
    first: int = 0
    count: int = 1
    together: int = 1
    causal: bool = True
    window: int = 0
    larger: float = 1.0
    on_device: bool = False
    seed: int = 0
    latent: bool = False
    """Whether values are the beginnings of keys, in one block."""
    keys: Array = field(init=False)
    values: Array = field(init=False)
    queries: Array = field(init=False)

    def __post_init__(self) -> None:
        random = np.random.default_rng(self.seed)
        shape = self.entries, self.kv_heads, self.held
        self.keys, self.values = (
            random.standard_normal((*shape, dim), np.float32).astype(DTYPES[self.dtype])
            for dim in (self.k_dim, self.v_dim)
        )
        if self.latent:
            self.values = self.keys[..., : self.v_dim]
        heads = self.kv_heads * self.group
        self.queries = random.standard_normal((self.entries, heads, self.count, self.k_dim), np.float32)
        self.queries *= np.float32(self.larger)
        for rows in (self.keys, self.values):
            rows[:, :, ~self.seen().any(0)] = np.nan

    def seen(self) -> Array:
        """Which rows each query sees, `[count, held]`."""
        own = np.arange(self.held - self.count, self.held)[:, None] + self.first
        position = np.arange(self.held)[None] + self.first
        low = own - self.window + 1 if self.window else np.full_like(own, -1)
        return (position >= low) & ((position <= own) | (not self.causal))

    @property
    def slots(self) -> int:
        """Slots of a head in the buffer."""
        return self.base + self.wrap + self.spare

    def laid(self, rows: Array) -> Array:
        """Rows in their slots, NaN in all others."""
        shape = *rows.shape[:2], self.slots, rows.shape[3]
        found = np.full((*shape, rows.dtype.itemsize), 0xFF, np.uint8).view(rows.dtype).reshape(shape)
        found[:, :, self.base + (self.turn + np.arange(self.held)) % self.wrap] = rows
        return found


def cases(dtype: str, k_dim: int, v_dim: int, group: int, n: int, some: bool = False) -> Iterator[Case]:
    """n cases of a geometry, of all kinds. All queries read a row together; or `some`: one or four of them."""
    random = np.random.default_rng(k_dim * 1000 + v_dim * 10 + group)
    pick = random.integers
    for seed in range(n):
        wrap = int(pick(1, 301))
        held = wrap if pick(0, 2) else int(pick(1, wrap + 1))
        count = int(random.choice([1, 2, 5, 9]))
        window = int(pick(1, held + 3)) if pick(0, 2) else 0
        sizes = {"kv_heads": int(pick(1, 4)), "entries": int(pick(1, 3)), "held": held, "wrap": wrap}
        asked = {"count": count, "together": int(pick(0, 2)) * 3 + 1 if some else count, "window": window}
        lies = {
            "base": int(pick(0, 3)),
            "turn": int(pick(0, wrap)),
            "spare": int(pick(0, 3)),
            "first": int(pick(0, 50)),
        }
        yield Case(
            dtype, k_dim, v_dim, group, **sizes, **asked, **lies, causal=bool(pick(0, 4)),
            larger=float(random.choice([1.0, 1.0, 1e-3, 30.0])), on_device=bool(pick(0, 2)), seed=seed,
        )  # fmt: skip


def pages(runtime: Runtime, case: Case, slots: int) -> Pages:
    """Rows in pages of a few slots, in any order of pages; NaN in all other slots."""
    random, each = np.random.default_rng(case.seed), -(-(case.first + case.held) // slots)
    tables = random.permutation(case.entries * each + 2).astype(np.int32)[: case.entries * each]
    of_entries = tables.reshape(case.entries, each)
    laid = (_in_pages(rows, of_entries, case.first, slots) for rows in (case.keys, case.values))
    keys, values = placed(runtime, *laid)
    values = keys if case.latent else values
    block = runtime.allocate(tables.nbytes + 4)
    runtime.upload(np.array([-1, *tables], np.int32), block)
    place = Place(keys.block, values.block, keys.at, values.at, slots)
    return Pages(place, case.kv_heads * slots, block, 1, each)


def _in_pages(rows: Array, tables: Array, first: int, slots: int) -> Array:
    shape = tables.size + 2, rows.shape[1], slots, rows.shape[3]
    found = np.full((*shape, rows.dtype.itemsize), 0xFF, np.uint8).view(rows.dtype).reshape(shape)
    for entry, t in np.ndindex(len(rows), rows.shape[2]):
        found[tables[entry, (first + t) // slots], :, (first + t) % slots] = rows[entry, :, t]
    return found


def positions(runtime: Runtime, case: Case) -> Positions:
    """Where the rows end: as the host knows it, or in every second number of a block on the device."""
    end = case.first + case.held
    if not case.on_device:
        return Positions(case.first, end)
    lengths = np.full(2 * case.entries + 1, -1, np.int64)
    lengths[1::2] = end
    block = runtime.allocate(lengths.nbytes)
    runtime.upload(lengths, block)
    return Positions(case.first, 0, block, 1, 2)
