"""Rows lying about on a device, NaN wherever no row is, and what strict attention makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kvgpu.caches import attention
from kvgpu.caches.attention import Pages, Positions, Runs
from kvgpu.caches.queries import asked
from kvgpu.memory.buffers import Workspace
from kvgpu.memory.device_arrays import DeviceRows
from kvgpu.memory.layout import Place
from kvgpu.runtime import Block, Runtime
from kvref.abilities.attention import Seen
from kvref.arithmetic.strict_attention import attend
from kvspec.geometry import DTYPES, Array, Config
from kvspec.masks import Causal, Explicit, Logical, Window
from support.device.attention_pair import settled

DIMS = (*range(5, 18), 64, 80, 128)
EDGE, BESIDE = np.float32(1234.5), 200
"""What lies beside arrays on the device, and how many of them."""

FILLS = np.array([1e-40, 1e-3, 1, 1, 30, 1e4], np.float32)


@dataclass
class Case:
    """`firsts` and `counts` say of each entry which positions are held; all are first 0 if counts differ."""

    config: Config
    heads: int
    queries: int
    first: int
    counts: list[int]
    logical: Logical
    splits: int
    seed: int
    random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        config, entries = self.config, len(self.counts)
        self.rows = [
            [self._numbers((config.kv_heads, n, d)) for n in self.counts] for d in (config.k_dim, config.v_dim)
        ]
        self.asks = self._numbers((entries, self.heads, self.queries, config.k_dim), np.dtype(np.float32))
        if self.random.random() < 0.3:
            self._spoil()

    def _numbers(self, shape: tuple[int, ...], dtype: np.dtype[Any] | None = None) -> Array:
        made = self.random.standard_normal(shape).astype(np.float32) * self.random.choice(FILLS)
        with np.errstate(over="ignore"):
            return made.astype(DTYPES[self.config.dtype] if dtype is None else dtype)

    def _spoil(self) -> None:
        """NaN and infinities among the rows."""
        for rows in (rows for part in self.rows for rows in part):
            rows[self.random.random(rows.shape) < 0.01] = self.random.choice([np.inf, -np.inf, np.nan])

    def expected(self) -> Array:
        """What the reference makes of it, entry by entry."""
        return np.concatenate([self._alone(entry, n) for entry, n in enumerate(self.counts)])

    def _alone(self, entry: int, n: int) -> Array:
        if n == 0:
            return np.zeros((1, self.heads, self.queries, self.config.v_dim), np.float32)
        keys, values = (part[entry][None] for part in self.rows)
        mine = tuple(Explicit(_of(p.array, entry)) if isinstance(p, Explicit) else p for p in self.logical)
        seen = Seen(mine, n, self.first + n).asked(1, self.heads, self.queries)
        return attend(self.asks[entry : entry + 1], keys, values, self.first, seen, self.splits)

    def found(self, runtime: Runtime, lie: str) -> Array:
        """What the kernels make of it, the rows lying so or so: `runs`, `ring`, `bucket` or `pages`."""
        lying, positions = LIES[lie](self, runtime)
        queries, out = self._between(runtime, self.asks), self._between(runtime, self._room())
        most, space = self.first + max(self.counts), Workspace(runtime)
        ready = attention.prepare(space, self.config, queries, asked(self.logical), self.splits, most, out)
        ready.answer(lying, positions)
        whole = runtime.download(out.block, 0, out.block.nbytes).view(np.float32)[0]
        assert (whole[:BESIDE] == EDGE).all() and (whole[-BESIDE:] == EDGE).all(), "written beside the output"
        return whole[BESIDE:-BESIDE].reshape(out.shape)

    def _room(self) -> Array:
        return np.full((*self.asks.shape[:-1], self.config.v_dim), np.nan, np.float32)

    def _between(self, runtime: Runtime, array: Array) -> DeviceRows:
        """An array on the device, with numbers before and behind it."""
        edge = np.full(BESIDE, EDGE, np.float32)
        whole = block(runtime, np.concatenate([edge, array.ravel(), edge]))
        return DeviceRows(runtime, whole, array.shape, array.dtype, edge.nbytes)

    def positions(self, runtime: Runtime) -> Positions:
        """Lengths on the device where they differ, among others that are not meant."""
        if len(set(self.counts)) == 1:
            return Positions(self.first, self.first + self.counts[0])
        ends = [number for n in self.counts for number in (77, self.first + n, -1)]
        return Positions(self.first, 0, block(runtime, np.array(ends)), 1, 3)

    def placed(self, runtime: Runtime, slots: int, lines: int, where: Callable[[int, int], Any]) -> Place:
        """All rows in blocks `[lines, slots]` of NaN, row t of entry e where that is said: lines of heads, slot."""
        blocks = []
        for part in self.rows:
            whole = np.full((lines, slots, part[0].shape[-1]), np.nan, DTYPES[self.config.dtype])
            for e, rows in enumerate(part):
                for t in range(rows.shape[1]):
                    line, slot = where(e, t)
                    whole[line : line + self.config.kv_heads, slot] = rows[:, t]
            before = np.full((3, part[0].shape[-1]), np.nan, whole.dtype)
            blocks.append(
                (block(runtime, np.concatenate([before, whole.reshape(-1, whole.shape[-1])])), before.nbytes)
            )
        (keys, keys_at), (values, values_at) = blocks
        return Place(keys, values, keys_at, values_at, slots)


def _of(array: Array, entry: int) -> Array:
    """A mask's array for one entry."""
    return array[entry : entry + 1] if array.shape[0] > 1 else array


def block(runtime: Runtime, array: Array) -> Block:
    """A copy on the device, in a block of just its bytes."""
    made = runtime.allocate(max(1, array.nbytes))
    if array.nbytes:
        runtime.upload(np.ascontiguousarray(array).view(np.uint8), made)
    return made


def _runs(case: Case, runtime: Runtime) -> tuple[Runs, Positions]:
    """In the first slots."""
    heads, slots = case.config.kv_heads, max(case.counts) + 2
    place = case.placed(runtime, slots, heads * len(case.counts), lambda e, t: (e * heads, t))
    return Runs(place, heads * slots), case.positions(runtime)


def _ring(case: Case, runtime: Runtime) -> tuple[Runs, Positions]:
    """Round and round, with slots before and behind, heads of other entries between."""
    heads, wrap = case.config.kv_heads, max(case.counts) + int(case.random.integers(0, 3))
    turn = int(case.random.integers(0, wrap))
    slots = wrap + 3
    place = case.placed(
        runtime, slots, (heads + 1) * len(case.counts), lambda e, t: (e * (heads + 1), 2 + (turn + t) % wrap)
    )
    return Runs.of(place.span(2, turn, wrap), (heads + 1) * slots), case.positions(runtime)


def _bucket(case: Case, runtime: Runtime) -> tuple[Runs, Positions]:
    """The new rows behind padding."""
    heads, past = case.config.kv_heads, max(0, min(case.counts) - case.queries)
    upper = past + 5
    slots = upper + max(case.counts) - past
    place = case.placed(
        runtime, slots, heads * len(case.counts), lambda e, t: (e * heads, t if t < past else upper + t - past)
    )
    return Runs(place, heads * slots, 0, past, upper), case.positions(runtime)


def _pages(case: Case, runtime: Runtime) -> tuple[Pages, Positions]:
    """In pages strewn over a pool, through tables that say -1 where no row is."""
    heads, size = case.config.kv_heads, int(case.random.integers(1, 9))
    each = -(-(case.first + max(case.counts)) // size)
    tables = case.random.permutation(len(case.counts) * each + 2)[: len(case.counts) * each].astype(np.int32)
    tables = tables.reshape(len(case.counts), each)

    def where(e: int, t: int) -> tuple[int, int]:
        return int(tables[e, (case.first + t) // size]) * heads, (case.first + t) % size

    place = case.placed(runtime, size, heads * (tables.size + 2), where)
    for e, n in enumerate(case.counts):
        tables[e, : case.first // size] = tables[e, -(-(case.first + n) // size) :] = -1
    padded = np.pad(tables, ((0, 0), (0, 1)), constant_values=-1)
    given = np.concatenate([np.array([-1, -1], np.int32), padded.reshape(-1)])
    return Pages(place, heads * size, block(runtime, given), 2, each + 1), case.positions(runtime)


LIES: dict[str, Callable[[Case, Runtime], tuple[Any, Positions]]] = {
    "runs": _runs,
    "ring": _ring,
    "bucket": _bucket,
    "pages": _pages,
}


def drawn(seed: int, dtype: str | None = None) -> Case:
    """A random case: anything may be large or small, and masks may be of all sorts."""
    random = np.random.default_rng(seed)
    config = Config(
        kv_heads=int(random.integers(1, 4)),
        k_dim=int(random.choice(DIMS)),
        v_dim=int(random.choice(DIMS)),
        dtype=dtype or str(random.choice(list(DTYPES))),
    )
    heads, queries = config.kv_heads * int(random.integers(1, 4)), int(random.choice([1, 1, 2, 3, 5]))
    ragged = random.random() < 0.4
    counts = [int(random.integers(queries, 100))] * 2 if not ragged else list(map(int, random.integers(0, 100, 3)))
    logical = _mask(random, heads, queries, counts, ragged)
    first = 0 if ragged else int(random.integers(0, 70))
    return Case(config, heads, 1 if ragged else queries, first, counts, logical, int(random.integers(1, 6)), seed)


def _mask(random: np.random.Generator, heads: int, queries: int, counts: list[int], ragged: bool) -> Logical:
    parts: list[Any] = [Causal()] if random.random() < 0.7 else []
    if random.random() < 0.4:
        parts.append(Window(int(random.integers(1, 70))))
    for _ in range(0 if ragged else int(random.choice([0, 0, 1, 1, 3]))):
        shape = [int(random.choice([1, whole])) for whole in (len(counts), heads)]
        seen = random.random((*shape, queries, int(random.choice([1, counts[0]])))) < 0.8
        scores = random.standard_normal(seen.shape).astype(np.float32)
        parts.append(Explicit(np.where(seen, scores, np.float32(-np.inf)) if random.random() < 0.5 else seen))
    return tuple(parts)


def _made(queries: int, count: int, logical: Logical, splits: int, seed: int) -> Case:
    config = Config(kv_heads=2, k_dim=5, v_dim=3)
    return Case(config, 4, queries, 0, [count], logical, splits, seed)


def _columns(*scores: float) -> Explicit:
    return Explicit(np.array([[[scores]]], np.float32))


ARRAYS: tuple[tuple[tuple[float, ...], ...], ...] = (
    ((3e38,), (3e38,)),
    ((3e38, -3e38, 0), (3e38, -3e38, 1), (-np.inf, 3e38, 1)),
    ((1e8,), (1, 2, 3), (-1e8,), (0.5, -np.inf, 0)),
)
"""Of several arrays: sums beyond f32, one that another hides, sums that depend on their order."""

CORNERS = (
    *(_made(7, 7, (Causal(), Window(w)), 2, w) for w in (1, 2, 3, 6, 7, 8)),
    *(_made(1, count, (), splits, count) for count in (31, 32, 33, 63, 64, 65) for splits in (2, 3)),
    *(_made(1, 150, (Causal(), Window(w)), 2, w) for w in (30, 60, 61, 62, 63, 64, 65, 90)),
    *(_made(1, count, (), splits, count) for count in (127, 128, 129) for splits in (2, 4, 5)),
    Case(
        Config(kv_heads=1, k_dim=5, v_dim=3), 2, 1, 0, [2], (Explicit(np.eye(2, dtype=bool)[None, :, None]),), 1, 1
    ),
    *(_made(1, 200, (Causal(), Window(130)), 2, seed) for seed in range(20)),
    _made(2, 2, (Explicit(np.array([[[[True, False], [False, True]]]])),), 1, 1),
    *(_made(1, 3, tuple(_columns(*each) for each in arrays), 1, len(arrays)) for arrays in ARRAYS),
)
"""Cases at the ends of tiles, windows and masks."""


def agree(case: Case, runtime: Runtime, lie: str) -> bool:
    """Whether the kernels make of it what the reference does, to the bit."""
    return settled(case.found(runtime, lie)) == settled(case.expected())
