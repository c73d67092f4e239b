"""Buffers on a device against the reference's: the same operations on both, and every observation the same."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvgpu.adapter import Caches
from kvspec.contract import Pair
from kvspec.errors import Refused
from kvspec.geometry import DTYPES, WORDS, Array, Config
from kvspec.rows.fills import EDGES, settled
from kvspec.session.driver import Session
from kvspec.session.step import Inputs, Step
from support import slow
from support.device.devices import ADAPTERS, NAMES, Scarce, adapter

FAR = (0, 1 << 31, 1 << 32, (1 << 40) - 64)


class Twins:
    """A buffer of the reference and one of an adapter, driven alike. `cast` says whether NaN may differ in bits."""

    def __init__(self, other: Any, config: Config, seed: int) -> None:
        self.random, self.config, self.cast = np.random.default_rng(seed), config, False
        self.sessions = Session(Reference(), ("state", "offset")), Session(other, ("state", "offset"))
        for session in self.sessions:
            assert session.begin("copy", config).result == "ok"

    def copy(self, n: int, at: int, sliding: int, rows: int, **changed: Any) -> Step:
        config = self.config.changed(**changed)
        pair = Pair(*(self._rows(config, rows, dim) for dim in (config.k_dim, config.v_dim)))
        op = {"op": "copy", "n": n, "at": at, "sliding": sliding}
        self.cast |= config.dtype != self.config.dtype
        return self.do(op, pair)

    def _rows(self, config: Config, rows: int, dim: int) -> Array:
        """Random bits, with edges among those that may be cast."""
        dtype, shape = DTYPES[config.dtype], (rows, config.kv_heads, dim)
        made = self.random.integers(0, 256, (*shape, dtype.itemsize), np.uint8).view(dtype).reshape(shape)
        if config.dtype != "f32":
            return made
        return np.where(self.random.random(shape) < 0.5, self.random.choice(EDGES, shape), made)

    def do(self, op: dict[str, Any], rows: Pair | None = None) -> Step:
        given = [Inputs(rows=rows and Pair(rows.keys.copy(), rows.values.copy())) for _ in self.sessions]
        ours, theirs = (s.do(op, g) for s, g in zip(self.sessions, given, strict=True))
        for what in ("result", "clause", "message", "values"):
            assert getattr(ours, what) == getattr(theirs, what), (op, self.config, ours, theirs)
        for name, array in ours.arrays.items():
            assert self._form(array) == self._form(theirs.arrays[name]), (op, name, self.config)
        return ours

    def _form(self, array: Array | None) -> Any:
        assert array is not None
        return array.dtype, array.shape, (settled(array) if self.cast else array).tobytes()


def config(pick: random.Random, wide: int = 1) -> Config:
    return Config(
        kv_heads=pick.choice((1, 2, 3, 8)),
        k_dim=wide * pick.choice((1, 2, 3, 4, 7, 8, 16, 32)),
        v_dim=wide * pick.choice((1, 2, 3, 4, 7, 8, 16, 32)),
        dtype=pick.choice(tuple(DTYPES)),
        capacity=pick.choice((1, 2, 3, 5, 16, 100)),
        layout=pick.choice(WORDS["layout"]),
    )


def step(twins: Twins, pick: random.Random) -> Step:
    """One operation, legal or not."""
    capacity = twins.config.capacity or 1
    kind = pick.choice(("linear", "linear", "sliding", "sliding", "sliding", "misfit", "alias", "scribble"))
    if kind == "scribble":
        return twins.do({"op": "scribble"})
    if kind == "alias":
        slots = {"at": pick.randrange(-1, capacity + 1), "source": pick.randrange(capacity + 2)}
        return twins.do({"op": "alias", "n": pick.randrange(3), **slots})
    n = pick.choice((0, 1, 1, 2, capacity - 1, capacity, capacity + 1, 2 * capacity + 3))
    far = pick.choice(FAR) if kind == "sliding" else 0
    at = far + pick.choice((0, 0, capacity - 1, capacity, max(0, capacity - n), pick.randrange(-1, capacity + 1)))
    rows = n + pick.choice((0, 0, 0, 1, 5, -1)) if n else pick.randrange(2)
    changed = {"dtype": pick.choice((twins.config.dtype, "f32", "f32", "bf16"))}
    wrong: dict[str, Any] = pick.choice(({"kv_heads": 4}, {"k_dim": 5}, {"v_dim": 64}, {"k_dim": 0, "v_dim": 0}))
    return twins.copy(n, at, int(kind == "sliding"), rows, **changed, **(wrong if kind == "misfit" else {}))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", slow.one_in(4, range(60)))
def test_random_copies_leave_the_same_bytes(seed: int, name: str) -> None:
    pick = random.Random(seed)
    twins = Twins(ADAPTERS[name](), config(pick, wide=pick.choice((1, 1, 4))), seed)
    results = [step(twins, pick).result for _ in range(pick.choice((10, 30)))]
    assert "ok" in results


def test_what_is_compared_holds_refusals_of_every_kind_and_casts_of_both_sorts() -> None:
    seen, made = set[str](), 0
    for seed in range(60):
        pick = random.Random(seed)
        twins = Twins(Reference(), config(pick, wide=pick.choice((1, 1, 4))), seed)
        seen |= {step(twins, pick).clause for _ in range(pick.choice((10, 30)))}
        made += twins.cast
    assert seen == {"", *(f"COPY-{n}" for n in range(17, 23))} and made > 10


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("layout", WORDS["layout"])
def test_a_copy_is_one_launch_and_moves_only_its_rows(name: str, layout: str) -> None:
    caches, shape = ADAPTERS[name](), Config(kv_heads=4, k_dim=64, v_dim=32, capacity=50, layout=layout)
    buffer, rows = caches.open("copy", shape), [np.ones((3, 4, dim), np.float32) for dim in (64, 32)]
    for resident in (False, True):
        sources = caches.place(*rows) if resident else rows
        buffer.copy(*sources, 3, 48, True)
        before = caches.runtime.meter.reading()
        buffer.copy(*sources, 3, 49, True)
        counted = caches.runtime.meter.since(before)
        assert counted["launches"] == 1 and counted["device_to_device"] == 3 * shape.row_bytes
        assert "allocations" not in counted and counted.get("host_to_device", 0) == (not resident) * 3 * 4 * 96 * 4
    assert (buffer.read("state").keys != 0).any()


def test_of_more_rows_than_the_capacity_only_those_that_remain_are_moved() -> None:
    caches, shape = adapter(), Config(capacity=2, layout="head")
    buffer, rows = caches.open("copy", shape), [np.ones((50, 2, dim), np.float16) for dim in (8, 6)]
    before = caches.runtime.meter.reading()
    buffer.copy(*rows, 50, 1, True)
    counted = caches.runtime.meter.since(before)
    assert counted["device_to_device"] == 2 * shape.row_bytes
    assert counted["host_to_device"] < 3 * shape.row_bytes


@pytest.mark.parametrize("name", [*ADAPTERS, "reference"])
def test_keys_and_values_of_two_dtypes_are_refused(name: str) -> None:
    other = {**ADAPTERS, "reference": Reference}[name]()
    buffer = other.open("copy", Config(capacity=2, layout="token"))
    with pytest.raises(Refused, match="f16 or f32 rows, found float32 keys and float16 values") as e:
        buffer.copy(np.ones((1, 2, 8), np.float32), np.ones((1, 2, 6), np.float16), 1, 0, False)
    assert e.value.clause == "COPY-18" and not buffer.read("state").keys.any()


@pytest.mark.parametrize("name", NAMES)
def test_sources_that_are_views_or_lie_in_any_order_are_read_right(name: str) -> None:
    caches, shape = ADAPTERS[name](), Config(capacity=3, layout="head")
    keys = np.arange(96, dtype=np.float16).reshape(8, 2, 6).transpose(2, 1, 0)[::2]
    values = np.asfortranarray(np.arange(36, dtype=np.float16).reshape(3, 2, 6))
    pairs = [adapter_.open("copy", shape) for adapter_ in (caches, Reference())]
    for buffer in pairs:
        buffer.copy(keys, values, 3, 1, True)
    ours, theirs = (buffer.read("state") for buffer in pairs)
    assert [a.tobytes() for a in ours] == [a.tobytes() for a in theirs]


def test_when_memory_runs_out_nothing_has_changed() -> None:
    """A copy allocates the space it stages in, and nothing else; a buffer allocates when it is opened."""
    scarce = Scarce(adapter().runtime)
    caches, shape = Caches("scarce", scarce, checks=True), Config(capacity=4, layout="token")
    scarce.left = 0
    with pytest.raises(MemoryError):
        caches.open("copy", shape)
    scarce.left = 1
    buffer = caches.open("copy", shape)
    rows = [np.ones((2, 2, dim), np.float16) for dim in (8, 6)]
    with pytest.raises(MemoryError):
        buffer.copy(*rows, 2, 0, False)
    assert not buffer.read("state").keys.any()
    scarce.left = 1
    buffer.copy(*rows, 2, 3, True)
    assert (buffer.read("state").keys.any((1, 2)) == [True, False, False, True]).all()
