"""What the host writes itself: the same bytes as the kernels write, and only while nothing else is under way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from kvgpu.adapter import Caches
from kvgpu.adapters import OpenCLFast
from kvgpu.memory import by_hand
from kvgpu.memory.device_arrays import source
from kvgpu.memory.layout import Place
from kvspec.geometry import DTYPES, Array, Config
from support.device.devices import adapter

SHAPE: dict[str, Any] = {"kv_heads": 3, "k_dim": 5, "v_dim": 2}
CONFIGS: dict[str, Config] = {
    "growing": Config(batch=2, step=16, **SHAPE),
    "ring": Config(batch=2, window=3, step=4, **SHAPE),
    "store": Config(layers=3, max_len=9, **SHAPE),
    "page": Config(page_size=2, pages=12, **SHAPE),
}


RANDOM = np.random.default_rng(5)


@pytest.fixture(scope="module")
def fast() -> Caches:
    found = OpenCLFast(checks=True)
    if not found.runtime.resting():
        pytest.skip("the host does not reach the memory of this device")
    return found


@pytest.fixture
def busy(fast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The device is never at rest."""
    monkeypatch.setattr(fast.runtime._queues, "idle", lambda: False)


def rows(kind: str, config: Config, n: int = 1) -> list[Array]:
    """Make rows that differ in every element, and from those made before."""
    entries = config.layers if kind == "store" else config.batch
    shapes = [(entries, config.kv_heads, n, dim) for dim in (config.k_dim, config.v_dim)]
    return [RANDOM.integers(0, 1 << 16, shape, np.uint16).view(DTYPES["f16"]) for shape in shapes]


def bits(pairs: Any) -> list[bytes]:
    return [np.asarray(array).tobytes() for pair in pairs for array in pair]


def content(kind: str, cache: Any) -> list[bytes]:
    """Give all bytes that a cache holds."""
    if kind == "page":
        return bits(cache.read_sequence(i) for i, n in enumerate(cache.sequences()) if n >= 0)
    if kind == "store":
        return bits(cache.read(layer) for layer in range(3))
    return bits([cache.read("state")])


def steps(kind: str, give: Callable[..., Any]) -> Iterator[Callable[[Any], Any]]:
    """Give what is done to a cache: appends of single rows, and what lies around them."""
    config = CONFIGS[kind].changed(dtype="f16")
    if kind == "page":
        yield lambda cache: cache.admit()
    for n in (3, 1, 1, 1):
        new = give(*rows(kind, config, n))
        yield lambda cache, new=new: cache.append(*new)
    if kind == "page":
        for sequence, new in ((1, give(*rows(kind, config))), (0, give(*rows(kind, config)))):
            yield lambda cache, sequence=sequence: cache.fork(0, 5) if sequence else None
            yield lambda cache, sequence=sequence, new=new: cache.append(*new, sequence)
    if kind == "store":
        new = give(*(array[:1] for array in rows(kind, config)))
        yield lambda cache: cache.append(*new, 1)
        more = give(*rows(kind, config))
        yield lambda cache: cache.append(*more)


def done(kind: str, on: Any, turns: list[tuple[Array, Array]]) -> Any:
    """Do the steps with these rows on an adapter."""
    taken = iter(turns)
    cache = on.open(kind, CONFIGS[kind].changed(dtype="f16"))
    for step in steps(kind, lambda *_: on.place(*next(taken))):
        step(cache)
    return cache


def some(kind: str) -> list[tuple[Array, Array]]:
    made: list[tuple[Array, Array]] = []
    list(steps(kind, lambda *arrays: made.append(arrays)))
    return made


@pytest.mark.parametrize("kind", CONFIGS)
def test_the_host_writes_what_kernels_write(kind: str, fast: Any) -> None:
    turns = some(kind)
    wanted = content(kind, done(kind, adapter(), turns))
    assert content(kind, done(kind, fast, turns)) == wanted and len({*wanted}) > 1


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_row_is_launched_while_the_device_works(kind: str, fast: Any, busy: None) -> None:
    turns, before = some(kind), fast.runtime.meter.launches
    cache = done(kind, fast, turns)
    assert fast.runtime.meter.launches - before >= len(turns)
    assert content(kind, cache) == content(kind, done(kind, adapter(), turns))


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_row_that_the_host_writes_is_no_launch(kind: str, fast: Any) -> None:
    cache = fast.open(kind, CONFIGS[kind].changed(dtype="f16"))
    for step in steps(kind, fast.place):
        step(cache)
        break
    if kind != "page":
        cache.append(*fast.place(*rows(kind, CONFIGS[kind].changed(dtype="f16"), 2)))
    new = fast.place(*rows(kind, CONFIGS[kind].changed(dtype="f16")))
    fast.synchronise()
    before = fast.runtime.meter.reading()
    cache.append(*new)
    moved = sum(array.shape[0] * 3 * array.shape[3] * 2 for array in new)
    assert fast.runtime.meter.since(before) == {"device_to_device": moved}


def test_a_row_that_is_timed_or_captured_is_launched(fast: Any) -> None:
    cache = fast.open("growing", CONFIGS["growing"].changed(dtype="f16"))
    new = fast.place(*rows("growing", CONFIGS["growing"]))
    cache.append(*new)
    assert fast.elapsed(lambda: cache.append(*new)) > 0
    wanted = content("growing", cache)
    captured = fast.runtime.capture(lambda: cache.store.rows.write_row(_place(new), 2))
    assert content("growing", cache) == wanted
    cache.append(*new)
    cache.store.rows.write_row(_place(fast.place(*rows("growing", CONFIGS["growing"]))), 2)
    assert content("growing", cache)[0] != content("growing", cache)[1]
    captured.replay()
    keys = cache.read("state").keys.view(np.uint16)
    assert (keys[:, :, 2] == keys[:, :, 1]).all()


def _place(new: Any) -> Place:
    return Place(new[0].block, new[1].block, new[0].at, new[1].at, 1)


def test_nothing_is_written_to_memory_that_was_released(fast: Any) -> None:
    cache = fast.open("growing", CONFIGS["growing"].changed(dtype="f16"))
    new = fast.place(*rows("growing", CONFIGS["growing"]))
    cache.append(*new)
    kept = cache.store.rows
    cache.free()
    with pytest.raises(AssertionError):
        kept.write_row(_place(new), 0)
    cache.append(*new)
    new[0].block.release()
    with pytest.raises(AssertionError, match="released"):
        cache.append(*new)


@pytest.mark.parametrize("most", [0, 13, 14])
def test_few_rows_alone_are_the_hosts(most: int, fast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of all six heads has 84 bytes."""
    monkeypatch.setattr(by_hand, "MOST", 6 * most)
    cache = fast.open("growing", CONFIGS["growing"].changed(dtype="f16"))
    new = fast.place(*rows("growing", CONFIGS["growing"]))
    cache.append(*new)
    before = fast.runtime.meter.launches
    cache.append(*new)
    assert fast.runtime.meter.launches - before == (most < 14)


def test_a_memory_that_the_host_does_not_reach_is_left_alone(fast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a device that copies a buffer where it is mapped."""
    kept: list[Any] = []

    def copied(block: Any) -> Array:
        kept.append(np.zeros(block.nbytes, np.uint8))
        return kept[-1]

    assert fast.runtime._tried()
    monkeypatch.setattr(fast.runtime, "reach", copied)
    assert not fast.runtime._tried() and len(kept) == 1


def test_where_rows_lie_is_known_until_they_come_with_others_or_in_another_layout(fast: Any) -> None:
    keys, values = fast.place(*rows("growing", CONFIGS["growing"]))
    others = fast.place(*rows("growing", CONFIGS["growing"]))[1]
    first = source(fast.runtime, 1, keys, values)
    assert first == _place((keys, values)) and source(fast.runtime, 1, keys, values) is first
    assert source(fast.runtime, 3, keys, values) == _place((keys, values))._replace(slots=3)
    assert source(fast.runtime, 1, keys, others) == _place((keys, others))
    assert source(fast.runtime, 1, keys[:1], values[:1]) == first


@pytest.mark.parametrize("kind", ["growing", "page"])
@pytest.mark.parametrize("widths", [(5, 5), (5, 2)], ids=["one width", "two widths"])
def test_keys_and_values_of_one_width_or_two_in_one_block_or_two(
    widths: tuple[int, int], kind: str, fast: Any
) -> None:
    """Rows of one width in one block are written by one assignment, those behind their values by two."""
    config = CONFIGS[kind].changed(dtype="f16", batch=1, k_dim=widths[0], v_dim=widths[1])
    keys, values = (RANDOM.integers(0, 1 << 16, (1, 3, 1, dim), np.uint16).view(np.float16) for dim in widths)
    behind, before = fast.place(values, keys)
    for given in (fast.place(keys, values), (*fast.place(keys), *fast.place(values)), (before, behind)):
        cache = fast.open(kind, config)
        if kind == "page":
            cache.admit()
        cache.append(*fast.place(keys, values))
        launches = fast.runtime.meter.launches
        cache.append(*given)
        assert fast.runtime.meter.launches == launches
        found = cache.read_sequence(0) if kind == "page" else cache.read("state")
        for array, wanted in zip(found, (keys, values), strict=True):
            assert array[..., 1, :].tobytes() == wanted.tobytes()


def test_a_row_of_a_latent_page_has_no_values_of_its_own(fast: Any) -> None:
    config = CONFIGS["page"].changed(dtype="f16", batch=1, k_dim=8, v_dim=6, form="latent")
    keys = RANDOM.integers(0, 1 << 10, (1, 3, 1, 8), np.uint16).astype(np.float16)
    cache = fast.open("page", config)
    cache.admit()
    for _ in range(3):
        cache.append(*fast.place(keys, keys[..., :6].copy()))
    found = cache.read_sequence(0)
    assert all((array == keys[0, ..., : array.shape[-1]]).all() for array in found) and found.keys.shape[1] == 3


def test_a_fork_copies_its_own_page_alone(fast: Any) -> None:
    """Every byte of a pool is as it was but for the page that was copied, whoever does it."""
    config = CONFIGS["page"].changed(dtype="f16", page_size=3)
    first, second = rows("page", config, 8), rows("page", config)
    found = []
    for on in (fast, adapter()):
        cache = on.open("page", config)
        cache.append(*on.place(*first), cache.admit())
        before = cache.pool.space.runtime.download(cache.pool.rows.block, 0, cache.pool.rows.block.nbytes)
        cache.append(*on.place(*second), cache.fork(0, 8))
        after = cache.pool.space.runtime.download(cache.pool.rows.block, 0, cache.pool.rows.block.nbytes)
        assert cache.table(1) == [0, 1, 3] and cache.references()[:4] == [2, 2, 1, 1]
        found.append((before.tobytes(), after.tobytes()))
    assert found[0] == found[1] and found[0][0] != found[0][1]


def test_pages_are_counted_by_their_tables(fast: Any) -> None:
    cache = fast.open("page", CONFIGS["page"].changed(dtype="f16"))
    cache.append(*fast.place(*rows("page", CONFIGS["page"], 5)), cache.admit())
    for n in (5, 4, 1):
        cache.fork(0, n)
    assert cache.references()[:4] == [4, 3, 2, 0] and cache.free_pages() == 9
    cache.append(*fast.place(*rows("page", CONFIGS["page"])), 1)
    assert cache.references()[:4] == [4, 3, 1, 1] and cache.table(1) == [0, 1, 3]
    for sequence in (0, 1, 2):
        cache.drop(sequence)
    assert cache.references()[:4] == [1, 0, 0, 0] and cache.free_pages() == 11
    cache.append(*fast.place(*rows("page", CONFIGS["page"], 3)), cache.admit())
    assert cache.table(0) == [1, 2]


def test_numbers_of_sequences_are_given_again_from_the_lowest(fast: Any) -> None:
    cache = fast.open("page", CONFIGS["page"].changed(dtype="f16"))
    assert [cache.admit() for _ in range(5)] == [0, 1, 2, 3, 4]
    for number in (1, 3, 4):
        cache.drop(number)
    assert cache.sequences() == [0, -1, 0]
    assert [cache.admit() for _ in range(4)] == [1, 3, 4, 5]


def test_the_table_of_a_dropped_sequence_serves_the_next(fast: Any) -> None:
    cache = fast.open("page", CONFIGS["page"].changed(dtype="f16"))
    cache.append(*fast.place(*rows("page", CONFIGS["page"], 3)), cache.admit())
    cache.drop(cache.fork(0, 3))
    before = fast.runtime.meter.allocations
    new = fast.place(*rows("page", CONFIGS["page"]))
    cache.append(*new, cache.fork(0, 3))
    assert fast.runtime.meter.allocations - before == 1  # the rows that were placed
    assert [a.tobytes() for a in cache.read_sequence(1)] != [a.tobytes() for a in cache.read_sequence(0)]
    assert np.array_equal(cache.read_sequence(1).keys[:, :3], cache.read_sequence(0).keys, equal_nan=True)


BATCH = Config(dtype="f16", layers=3, max_len=9, **SHAPE)
OTHERS = Config(dtype="f16", layers=2, max_len=6, kv_heads=2, k_dim=4, v_dim=4)

CONFIGS_OF_BATCHES = {"two widths": BATCH, "one width": OTHERS, "a form": BATCH.changed(form="int8/1")}


def token(config: Config, sequences: int) -> list[Array]:
    """Make a row of each sequence in each layer."""
    shapes = [(config.layers, sequences, config.kv_heads, dim) for dim in (config.k_dim, config.v_dim)]
    return [RANDOM.integers(0, 1 << 16, shape, np.uint16).view(DTYPES["f16"]) for shape in shapes]


def stepped(on: Any, config: Config, sequences: int, turns: list[list[Array]], replayed: bool, cut: bool) -> Any:
    """Step a batch that has room for one sequence more, after one was cut if asked for."""
    store = on.open("store", config)
    store.batch(sequences + 1)
    store.batch(sequences)
    captured = store.capture() if replayed else None
    for i, new in enumerate(turns):
        if cut and i == 2:
            store.rollback_sequence(1, 1)
        (captured.replay if captured else store.step)(*on.place(*new))
    return store


def batch_content(store: Any, config: Config, sequences: int) -> list[bytes]:
    return bits(store.read_sequence(layer, s) for layer in range(config.layers or 0) for s in range(sequences))


@pytest.mark.parametrize("cut", [False, True], ids=["of one length", "of two lengths"])
@pytest.mark.parametrize("replayed", [False, True], ids=["stepped", "replayed"])
@pytest.mark.parametrize("config", CONFIGS_OF_BATCHES.values(), ids=CONFIGS_OF_BATCHES)
def test_the_host_steps_a_batch_as_kernels_do(config: Config, replayed: bool, cut: bool, fast: Any) -> None:
    turns = [token(config, 3) for _ in range(4)]
    wanted = stepped(adapter(), config, 3, turns, replayed, cut)
    store = stepped(fast, config, 3, turns, replayed, cut)
    assert store.sequences() == wanted.sequences() == ([4, 3, 4] if cut else [4, 4, 4])
    assert batch_content(store, config, 3) == batch_content(wanted, config, 3)


@pytest.mark.parametrize("replayed", [False, True], ids=["stepped", "replayed"])
def test_a_step_that_the_host_does_is_no_launch_and_counts_its_bytes(replayed: bool, fast: Any) -> None:
    store = stepped(fast, BATCH, 2, [token(BATCH, 2)], replayed, cut=False)
    do, new = store.capture().replay if replayed else store.step, fast.place(*token(BATCH, 2))
    fast.synchronise()
    before = fast.runtime.meter.reading()
    do(*new)
    assert fast.runtime.meter.since(before) == {"device_to_device": 3 * 2 * BATCH.row_bytes}


@pytest.mark.parametrize("replayed", [False, True], ids=["stepped", "replayed"])
def test_a_step_goes_on_behind_what_the_host_wrote(
    replayed: bool, fast: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels read the lengths on the device, which the host has advanced."""
    turns = [token(BATCH, 3) for _ in range(5)]
    wanted = batch_content(stepped(adapter(), BATCH, 3, turns, replayed, cut=True), BATCH, 3)
    store = fast.open("store", BATCH)
    store.batch(3)
    do = store.capture().replay if replayed else store.step
    for i, new in enumerate(turns):
        if i == 2:
            store.rollback_sequence(1, 1)
        with monkeypatch.context() as patched:
            patched.setattr(by_hand, "MOST_STEP", 1 << 20 if i % 2 else 0)
            before = fast.runtime.meter.launches
            do(*fast.place(*new))
            assert (fast.runtime.meter.launches == before) == bool(i % 2)
    assert batch_content(store, BATCH, 3) == wanted
