"""Batches for captured steps, of every kind, and beside each its sequences alone, layer by layer, uncaptured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from kvgpu.adapter import Caches
from kvgpu.captured.batch import Batch
from kvgpu.captured.batch_step import CapturedBatchStep
from kvgpu.captured.growing_batch import GrowingBatch
from kvgpu.captured.page_batch import PageBatch
from kvgpu.captured.window_batch import WindowBatch
from kvgpu.memory.device_arrays import fetched
from kvspec.contract import Attention, Pair, Rope
from kvspec.geometry import DTYPES, Array, Config

LAYERS, HEADS, KV_HEADS, K_DIM, V_DIM = 3, 4, 2, 64, 32
CONFIG = Config(k_dim=K_DIM, v_dim=V_DIM, kv_heads=KV_HEADS)


def rows(random: np.random.Generator, n: int, dtype: str) -> Pair:
    """Rows `[layers, kv_heads, n, dim]`."""
    shapes = ((LAYERS, KV_HEADS, n, dim) for dim in (K_DIM, V_DIM))
    return Pair(*(random.standard_normal(shape).astype(np.float32).astype(DTYPES[dtype]) for shape in shapes))


class Kind(ABC):
    """A batch whose sequences hold some rows, and each sequence alone with the same rows. A batch can take
    `steps` more rows of every sequence but those that are `gone`."""

    steps = 3
    lengths = (6, 0, 3, 7, 1)
    batch: Batch

    def __init__(self, caches: Caches, dtype: str = "f16") -> None:
        self.caches, self.dtype, self.config = caches, dtype, CONFIG.changed(dtype=dtype)
        self.random, self.max_len = np.random.default_rng(1), max(self.lengths) + self.steps
        self.gone = set[int]()
        self.open()

    @abstractmethod
    def open(self) -> None:
        """Make `batch`, and the sequences alone."""

    def given(self, n: int) -> Pair:
        """Rows of a sequence."""
        return rows(self.random, n, self.dtype)

    @abstractmethod
    def alone(self, sequence: int, layer: int) -> Callable[..., Array]:
        """The attend of a sequence alone in a layer."""

    @abstractmethod
    def held(self, sequence: int) -> Pair:
        """What the batch holds of a sequence, `[layers, kv_heads, n, dim]`."""

    @abstractmethod
    def wanted(self, sequence: int, layer: int) -> Pair:
        """What a sequence alone holds in a layer, `[kv_heads, n, dim]`."""


class Growing(Kind):
    """A store's batch; alone, stores."""

    def open(self) -> None:
        config = self.config.changed(layers=LAYERS, max_len=self.max_len)
        self.store, *self.stores = (self.caches.open("store", config) for _ in range(1 + len(self.lengths)))
        self.store.batch(len(self.lengths))
        for sequence, (n, one) in enumerate(zip(self.lengths, self.stores, strict=True)):
            given = self.given(n)
            for store in (self.store, one) if n else ():
                store.append(*given)
            self.store.scatter(sequence, n)
            self.store.reset()
        self.batch = GrowingBatch(self.store)

    def alone(self, sequence: int, layer: int) -> Callable[..., Array]:
        return partial(self.stores[sequence].attend, of=layer)

    def held(self, sequence: int) -> Pair:
        read = [self.store.read_sequence(layer, sequence) for layer in range(LAYERS)]
        return Pair(*map(np.stack, zip(*read, strict=True)))

    def wanted(self, sequence: int, layer: int) -> Pair:
        return self.stores[sequence].read(layer)


class Window(Kind):
    """Alone, a ring for each layer. Some are past their window; all will be, and come round to the first slot."""

    steps, window = 8, 5
    batch: WindowBatch

    def open(self) -> None:
        self.rings = [[self.ring() for _ in range(LAYERS)] for _ in self.lengths]
        config = self.config.changed(window=self.window, layers=LAYERS, max_len=self.max_len)
        self.batch = WindowBatch(self.caches.space, config, len(self.lengths))
        for sequence, (n, rings) in enumerate(zip(self.lengths, self.rings, strict=True)):
            self.fill(rings, n)
            self.batch.admit(sequence, rings)

    def ring(self) -> Any:
        return self.caches.open("ring", self.config.changed(window=self.window))

    def fill(self, rings: Sequence[Any], n: int) -> None:
        """Append n rows: several, then one by one, so that some rings have turned."""
        for part in (n - n // 3, *[1] * (n // 3)):
            for ring, *given in zip(rings, *self.given(part), strict=True):
                ring.append(*(a[None] for a in given))

    def again(self, sequence: int, n: int) -> None:
        """Have a sequence of n other rows in the place of one."""
        self.rings[sequence] = [self.ring() for _ in range(LAYERS)]
        self.fill(self.rings[sequence], n)
        self.batch.admit(sequence, self.rings[sequence])

    def alone(self, sequence: int, layer: int) -> Callable[..., Array]:
        attend: Callable[..., Array] = self.rings[sequence][layer].attend
        return attend

    def held(self, sequence: int) -> Pair:
        return self.batch.read(sequence)

    def wanted(self, sequence: int, layer: int) -> Pair:
        return Pair(*(a[0] for a in self.rings[sequence][layer].read("view")))


class Paged(Kind):
    """Alone, the sequences of a paged cache for each layer. Sequences come to the ends of pages at different times;
    two share their first page."""

    steps, slots, pages = 8, 4, 30
    batch: PageBatch

    def open(self) -> None:
        config = self.config.changed(page_size=self.slots, pages=self.pages)
        self.whole = self.caches.open("page", config.changed(kv_heads=LAYERS * KV_HEADS))
        self.layers = [self.caches.open("page", config) for _ in range(LAYERS)]
        self.batch = PageBatch(self.whole, LAYERS, len(self.lengths), self.max_len)
        for sequence, n in enumerate(self.lengths):
            self.fill(n)
            self.batch.admit(sequence, sequence)
        for sequence in range(0, len(self.lengths), 2):
            self.whole.drop(sequence)

    def fill(self, n: int) -> None:
        """Another sequence of n rows; the first page of the first long one is the first page of all long ones."""
        shared = self.slots if min(n, max(self.whole.sequences(), default=0)) > self.slots else 0
        given = self.given(n - shared)
        several = [a.reshape(1, LAYERS * KV_HEADS, *a.shape[2:]) for a in given]
        for cache, new in ((self.whole, several), *((one, _one(given, i)) for i, one in enumerate(self.layers))):
            sequence = cache.fork(0, shared) if shared else cache.admit()
            cache.append(*new, sequence)

    def again(self, sequence: int, n: int) -> None:
        """Have a sequence of n rows of the fourth one in the place of one."""
        other = self.whole.fork(3, n)
        self.batch.admit(sequence, other)
        for cache, *rows in zip(self.layers, *map(_by_layers, self.whole.read_sequence(other)), strict=True):
            cache.truncate(sequence, 0)
            cache.append(*rows, sequence)
        self.whole.drop(other)

    def alone(self, sequence: int, layer: int) -> Callable[..., Array]:
        return partial(self.layers[layer].attend, of=sequence)

    def held(self, sequence: int) -> Pair:
        return self.batch.read(sequence)

    def wanted(self, sequence: int, layer: int) -> Pair:
        return self.layers[layer].read_sequence(sequence)


def _one(given: Pair, layer: int) -> list[Array]:
    return [a[layer : layer + 1] for a in given]


class WideWindow(Window):
    """Tiles of tensor cores fit into the window."""

    steps, window, lengths = 18, 16, (17, 0, 40)


class WidePages(Paged):
    """They fit into pages."""

    steps, slots, lengths = 18, 16, (17, 0, 40)


def _by_layers(rows: Array) -> Array:
    """Rows of the heads of all layers, `[layers, 1, kv_heads, n, dim]`."""
    return rows.reshape(LAYERS, 1, KV_HEADS, *rows.shape[1:])


KINDS: dict[str, type[Kind]] = {"growing": Growing, "window": Window, "pages": Paged}
WIDE: dict[str, type[Kind]] = {"window": WideWindow, "pages": WidePages}


def stepped(kind: Kind, step: CapturedBatchStep, number: int, turn: Rope | None) -> dict[str, int]:
    """Do a step, with rows from the host or the device by turns, and the same of every sequence alone; outputs are
    the same bits. Gives what the replay cost."""
    random, m = np.random.default_rng(number + 10), len(kind.lengths)
    queries = random.standard_normal((LAYERS, m, HEADS, 1, K_DIM), np.float32)
    given = [rows(random, 1, kind.dtype) for _ in range(m)]
    taken = queries, *(np.stack([a[:, :, 0] for a in arrays], 1) for arrays in zip(*given, strict=True))
    step.take(*(kind.caches.place(*taken) if number % 2 else taken))
    meter = step.space.runtime.meter
    before = meter.reading()
    step.replay()
    spent = meter.since(before)
    found = fetched(step.out).reshape(LAYERS, m, HEADS, 1, V_DIM)
    for layer, s in np.ndindex(LAYERS, m):
        if s in kind.gone:
            assert not found[layer, s].any(), (number, layer, s)
            continue
        attend, its = kind.alone(s, layer), _one(given[s], layer)
        wanted = attend(queries[layer, s : s + 1], *its, Attention(rope=turn))
        assert found[layer, s].tobytes() == wanted.tobytes(), (number, layer, s)
    return spent


def compared(kind: Kind) -> None:
    """What the batch holds is what the sequences hold alone."""
    for s in sorted(set(range(len(kind.lengths))) - kind.gone):
        for layer, *held in zip(range(LAYERS), *kind.held(s), strict=True):
            for mine, same in zip(held, kind.wanted(s, layer), strict=True):
                assert mine.tobytes() == same.tobytes(), (s, layer)
