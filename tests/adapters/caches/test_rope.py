"""RoPE on a device against the reference's: the same bits, wherever rows lie; and what a step of it costs."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvgpu.adapter import Caches
from kvgpu.memory import rope_angles as angles
from kvgpu.memory import rope_tables
from kvgpu.memory.rope_scaling import sensible
from kvspec.contract import Attention, Pair, Rope
from kvspec.errors import Refused
from kvspec.geometry import DTYPES, Array, Config
from kvspec.rope.scaling import NTK, Linear, Llama3, LongRoPE, Scaling, YaRN
from kvspec.rows.fills import settled
from support.device.devices import ADAPTERS, NAMES, Scarce, adapter

FAR = (0, 1, 5, -1, 1000, 100_000, (1 << 31) - 1, 1 << 40, -(1 << 40), 1 << 60)


def bits(seed: int, shape: tuple[int, ...], dtype: str) -> Array:
    """Rows of any bits, and among them ordinary numbers."""
    made, kind = np.random.default_rng(seed), DTYPES[dtype]
    noise: Array = made.integers(0, 256, (*shape, kind.itemsize), np.uint8).view(kind).reshape(shape)
    plain = made.standard_normal(shape).astype(np.float32).astype(kind)
    return np.where(made.random(shape) < 0.2, noise, plain)


def drawn(seed: int) -> tuple[Array, Array, Rope]:
    """Rows, positions, and how they are turned."""
    pick = random.Random(seed)
    width = pick.choice((2, 3, 4, 7, 8, 16, 33, 64, 128))
    shape = pick.choice((1, 2)), pick.choice((1, 2, 3)), pick.choice((1, 2, 5, 40)), width
    dims = pick.choice((None, *range(2, width + 1, 2))) if width % 2 == 0 else pick.choice(range(2, width + 1, 2))
    positions = pick.choice(FAR) + pick.choice((1, -1, 0, 77)) * np.arange(shape[2])
    rope = Rope(pick.choice(("norm", "neox")), pick.choice((10_000, 1, 2, 500_000, (1 << 31) - 1)), dims)  # type: ignore[arg-type]
    rope = rope._replace(scaling=scaled(pick, width if dims is None else dims, rope.base))
    return bits(seed, shape, pick.choice(tuple(DTYPES))), positions.astype(np.int64), rope


def scaled(pick: random.Random, dims: int, base: int) -> Scaling | None:
    """A scaling of these many elements, or none."""
    short, long = (tuple(pick.choice((0.9, 1.0, 1.08, 37.5)) for _ in range(dims // 2)) for _ in range(2))
    factor, m = pick.choice((1.0, 1.3, 8.0, 40.0)), pick.choice((None, 1.0, 0.7))
    made: list[Scaling | None] = [None, Linear(factor), LongRoPE(factor, 1000, short, long, m)]
    made += [NTK(factor)] * (dims > 2) + [Llama3(factor, 1, 4, 8192)]
    yarn = YaRN(factor, 64, 8, 1, m)
    made += [yarn] * sensible(yarn, dims, base)
    return pick.choice(made)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(40))
def test_rows_are_turned_to_the_same_bits_from_the_host_and_on_the_device(seed: int, name: str) -> None:
    caches, (rows, positions, rope) = ADAPTERS[name](), drawn(seed)
    wanted, before = settled(Reference().rotate(rows, positions, rope)).tobytes(), rows.tobytes()
    assert settled(caches.rotate(rows, positions, rope)).tobytes() == wanted and rows.tobytes() == before
    (placed,) = caches.place(rows)
    turned = caches.rotate(placed, positions, rope)
    assert settled(caches.fetch(turned)).tobytes() == wanted and caches.fetch(placed).tobytes() == before
    assert caches.fetch(caches.rotate(turned, -positions, rope)).shape == rows.shape


@pytest.mark.parametrize("name", NAMES)
def test_views_of_any_order_are_read_right_and_positions_of_any_width(name: str) -> None:
    rows = bits(1, (8, 5, 3, 2), "f32").transpose(3, 2, 1, 0)[:, ::2]
    caches, rope = ADAPTERS[name](), Rope()
    for positions in (np.arange(5), np.arange(10)[::2], np.arange(5, dtype=np.int32)):
        wanted = Reference().rotate(np.ascontiguousarray(rows), positions, rope)
        assert settled(caches.rotate(rows, positions, rope)).tobytes() == settled(wanted).tobytes()


@pytest.mark.parametrize("name", [*ADAPTERS, "reference"])
def test_what_no_trace_can_hand_in_is_refused_too(name: str) -> None:
    caches = {**ADAPTERS, "reference": Reference}[name]()
    for rows, positions in (
        (np.zeros((2, 3, 4), np.float32), np.arange(3)),
        (np.zeros((1, 2, 3, 4)), np.arange(3)),
        (np.zeros((1, 2, 3, 4), np.int32), np.arange(3)),
        (np.zeros((1, 2, 3, 4), np.float32), np.arange(3)[None]),
    ):
        with pytest.raises(Refused, match="expected rows") as e:
            caches.rotate(rows, positions, Rope())
        assert e.value.clause == "ROPE-11"


CACHES = {
    "growing": Config(k_dim=8, step=4),
    "ring": Config(k_dim=8, window=3),
    "store": Config(k_dim=8, layers=2, max_len=12),
}


class Twins:
    """A cache of the reference and one of an adapter, attended with alike."""

    def __init__(self, caches: Caches, kind: str, pick: random.Random) -> None:
        self.caches, self.pick, self.kind = caches, pick, kind
        self.config = CACHES[kind].changed(dtype=pick.choice(tuple(DTYPES)), k_dim=pick.choice((2, 8, 20)))
        self.pair = Reference().open(kind, self.config), caches.open(kind, self.config)
        self.length = 0

    def attend(self, seed: int) -> None:
        n, of = self.pick.choice((1, 1, 2, 4)), 1 if self.kind == "store" else None
        if of is not None and self.length + n > 12:
            return self.back(0)
        queries = bits(seed, (1, 4, n, self.config.k_dim), "f32")
        rows = [bits(seed + i, self.config.shape(kind, n), self.config.dtype) for i, kind in enumerate("kv")]
        long = LongRoPE(4, 3, *((x,) * (self.config.k_dim // 2) for x in (1.0, 2.5)))
        rope = self.pick.choice((None, Rope(), Rope("norm", 77), Rope(scaling=long), Rope(scaling=Linear(4))))
        how = Attention(rope=rope)
        resident = self.pick.random() < 0.5
        handed = self.caches.place(queries, *rows) if resident else (queries, *rows)
        wanted = self.pair[0].attend(queries, *rows, how, None, of)  # type: ignore[attr-defined]
        found = self.pair[1].attend(*handed, how, None, of)  # type: ignore[attr-defined]
        found = self.caches.fetch(found) if resident else found
        assert isinstance(found, np.ndarray) and settled(found).tobytes() == settled(wanted).tobytes()
        self.length += n
        return None

    def back(self, to: int) -> None:
        for cache_ in self.pair:
            cache_.rollback(to) if self.kind == "store" else cache_.rewind(to)  # type: ignore[attr-defined]
        self.length = to

    def same(self) -> None:
        states = [self._state(cache_) for cache_ in self.pair]
        assert states[0] == states[1]

    def _state(self, cache_: Any) -> list[bytes]:
        found = cache_.read(1) if self.kind == "store" else cache_.read("state")
        return [] if found is None else [settled(a).tobytes() for a in found]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", CACHES)
@pytest.mark.parametrize("seed", range(6))
def test_caches_attend_to_the_same_bits_over_the_same_rows(seed: int, kind: str, name: str) -> None:
    pick = random.Random(seed)
    twins = Twins(ADAPTERS[name](), kind, pick)
    for i in range(10):
        twins.attend(1000 * seed + 10 * i)
        if pick.random() < 0.2 and (kind != "ring" or twins.length <= 3):
            twins.back(pick.randrange(twins.length + 1))
        twins.same()


@pytest.mark.parametrize("name", NAMES)
def test_a_turn_is_one_launch_and_uploads_its_positions_once_for_all_layers(name: str) -> None:
    caches, positions = ADAPTERS[name](), np.arange(70_000, 70_003)
    layers = caches.place(*(bits(i, (1, 2, 3, 16), "bf16") for i in range(3)))
    counts = []
    for rows in layers:
        before = caches.runtime.meter.reading()
        caches.rotate(rows, positions, Rope())
        counts.append(caches.runtime.meter.since(before))
    assert [c["launches"] for c in counts] == [1, 1, 1]
    assert [c.get("host_to_device", 0) for c in counts] == [3 * 16 * 4, 0, 0]
    assert all(c["device_to_device"] == 2 * 3 * 16 * 2 and "device_to_host" not in c for c in counts)


@pytest.mark.parametrize("name", NAMES)
def test_a_steady_decode_with_rope_allocates_nothing_but_its_output_and_uploads_one_line(name: str) -> None:
    caches = ADAPTERS[name]()
    cache_ = caches.open("growing", Config(k_dim=16, v_dim=8, dtype="f16", step=64))
    out, found = caches.place(np.zeros((1, 2, 1, 8), np.float32))[0], []
    for i in range(20):
        handed = caches.place(bits(i, (1, 2, 1, 16), "f32"), *(bits(i, (1, 2, 1, d), "f16") for d in (16, 8)))
        before = caches.runtime.meter.reading()
        cache_.attend(*handed, Attention(rope=Rope()), out)  # type: ignore[attr-defined]
        found.append(caches.runtime.meter.since(before))
    steady = found[-5:]
    assert all(c.get("allocations", 0) == 0 and c["host_to_device"] == 16 * 4 for c in steady)
    assert all("device_to_host" not in c and c["launches"] == 4 for c in steady)


def test_the_oldest_table_makes_room_and_the_newest_are_kept() -> None:
    caches = adapter()
    kept = rope_tables.Tables(caches.runtime)
    before = caches.runtime.meter.reading()
    blocks = [kept.table(np.array([i], np.int64), 8, Rope()) for i in range(rope_tables.KEPT + 2)]
    counted = caches.runtime.meter.since(before)
    assert counted["allocations"] == rope_tables.KEPT and counted["host_to_device"] == len(blocks) * 32
    assert blocks[0] is blocks[rope_tables.KEPT] and kept.table(np.array([5], np.int64), 8, Rope()) is blocks[5]
    long = [kept.table(np.arange(n), 8, Rope()) for n in (1000, 1001)]
    counted = caches.runtime.meter.since(before)
    assert min(block.nbytes for block in long) >= 32_000
    assert counted["allocations"] == 2 * rope_tables.KEPT and counted["frees"] == rope_tables.KEPT


def test_tables_of_other_scalings_are_other_tables() -> None:
    kept = rope_tables.Tables(adapter().runtime)
    scalings: tuple[Scaling | None, ...] = (None, Linear(4), NTK(4), Linear(4))
    blocks = [kept.table(np.array([9], np.int64), 8, Rope(scaling=scaling)) for scaling in scalings]
    assert len(set(map(id, blocks))) == 3 and blocks[1] is blocks[3]


NOT_FINITE: tuple[Scaling, ...] = (
    Linear(float("nan")),
    Linear(float("inf")),
    YaRN(4, 64, 8, 1, float("nan")),
    LongRoPE(4, 64, (1.0, float("inf")), (1.0, 1.0)),
)


@pytest.mark.parametrize("name", [*ADAPTERS, "reference"])
@pytest.mark.parametrize("scaling", NOT_FINITE, ids=str)
def test_a_scaling_that_no_trace_can_write_is_refused_too(scaling: Scaling, name: str) -> None:
    caches = {**ADAPTERS, "reference": Reference}[name]()
    with pytest.raises(Refused, match="scaling") as e:
        caches.rotate(np.zeros((1, 2, 3, 4), np.float32), np.arange(3), Rope(scaling=scaling))
    assert e.value.clause == "ROPE-38"


def test_lines_of_successive_positions_are_made_together_and_are_those_of_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = [
        (first, n) for first in (0, 63, 64, 1 << 40, rope_tables.FAR - 1, (1 << 63) - 70) for n in (1, 2, 64, 65)
    ]
    runs = [np.arange(first, first + n) for first, n in asked]
    for positions in (*runs, np.array([3, 5, 4]), np.array([-1, 0]), np.array([5, 5])):
        wanted = angles.table(positions, 6, 10_000)
        assert rope_tables.lines(positions, 6, 10_000).tobytes() == wanted.tobytes()
    made: list[int] = []
    table = angles.table
    monkeypatch.setattr(angles, "table", lambda p, *rest: made.append(len(p)) or table(p, *rest))
    for position in range(640, 640 + 3 * rope_tables.PIECE):
        rope_tables.lines(np.array([position]), 6, 10_000)
    assert made == [rope_tables.PIECE] * 3


@pytest.mark.parametrize("left", range(9))
def test_when_memory_runs_out_nothing_has_changed(left: int) -> None:
    scarce = Scarce(adapter().runtime)
    caches, config = Caches("scarce", scarce, checks=True), Config(k_dim=8, step=8)
    cache_, rows = caches.open("growing", config), [bits(i, (1, 2, 1, d), "f16") for i, d in enumerate((8, 6))]
    queries, how = bits(7, (1, 2, 1, 8), "f32"), Attention(rope=Rope())
    cache_.append(*rows)
    scarce.left = left
    with pytest.raises(MemoryError):
        cache_.attend(queries, *rows, how)  # type: ignore[attr-defined]
    assert cache_.lengths().offset == 1
    scarce.left = 1 << 30
    wanted = Reference().open("growing", config)
    wanted.append(*rows)
    after = [c.attend(queries, *rows, how) for c in (cache_, wanted)]  # type: ignore[attr-defined]
    assert settled(after[0]).tobytes() == settled(after[1]).tobytes()


def test_rows_and_positions_of_two_kinds_are_two_things() -> None:
    """Keys on the device and queries on the host, and the other way about."""
    caches, config, how = adapter(), Config(k_dim=8), Attention(rope=Rope())
    queries, rows = bits(1, (1, 2, 2, 8), "f32"), [bits(i, (1, 2, 2, d), "f16") for i, d in ((2, 8), (3, 6))]
    wanted = Reference().open("growing", config).attend(queries, *rows, how)  # type: ignore[attr-defined]
    (placed_queries,), placed = caches.place(queries), caches.place(*rows)
    found = caches.open("growing", config).attend(queries, *placed, how)  # type: ignore[attr-defined]
    other = caches.open("growing", config).attend(placed_queries, *rows, how)  # type: ignore[attr-defined]
    assert [settled(a).tobytes() for a in (found, caches.fetch(other))] == [settled(wanted).tobytes()] * 2
    assert isinstance(rows, list) and Pair(*rows).keys.dtype == np.float16
