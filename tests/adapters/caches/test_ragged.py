"""Ragged caches on a device: as the reference has them, at a counted cost, unharmed when memory runs out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kvconform.generate.strategies import ragged
from kvgpu.adapter import Caches
from kvspec.contract import Pair
from kvspec.geometry import WORDS, Array, Config
from support import random_traces, slow
from support.device.device_costs import cost, raises
from support.device.devices import ADAPTERS, NAMES, Scarce, adapter


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", slow.counts(6, 60))
def test_random_operations_observe_the_same(count: int, name: str) -> None:
    random_traces.observe_the_same(ADAPTERS[name](), random_traces.drawn(ragged.explored, count=count))


CONFIG = Config(batch=3, step=4, padding="left")
ROW = 2 * 2 * (8 + 6)
"""Bytes of a row of one sequence, keys and values of both heads."""


def block(columns: int, sequences: int = 3) -> Pair:
    """A block of numbers, other ones in every column."""
    return Pair(*(_numbers(CONFIG.changed(batch=sequences).shape(kind, columns)) for kind in "kv"))


def _numbers(shape: tuple[int, ...]) -> Array:
    return np.arange(np.prod(shape)).reshape(shape).astype(np.float16)


def fed(ours: Caches, lengths: tuple[int, ...] = (1, 3, 2), padding: str = "left") -> Any:
    """A batch of sequences of these lengths."""
    cache: Any = ours.open("ragged", CONFIG.changed(padding=padding))
    cache.feed(*block(max(lengths)), lengths)
    return cache


@pytest.mark.parametrize("padding", WORDS["padding"])
def test_a_step_of_all_sequences_moves_the_new_rows_alone(padding: str) -> None:
    ours = adapter()
    cache, there = fed(ours, padding=padding), ours.place(*block(1))
    assert cost(cache, lambda: cache.feed(*there, [1, 1, 1])) == {"launches": 3, "device_to_device": 3 * ROW}


def test_padding_on_the_right_moves_no_row_that_is_there() -> None:
    ours = adapter()
    cache, there = fed(ours, padding="right"), ours.place(*block(2))
    found = cost(cache, lambda: cache.feed(*there, [2, 0, 1]))
    assert found == {"launches": 2, "device_to_device": 3 * ROW}


def test_padding_on_the_left_moves_rows_where_it_changes() -> None:
    ours = adapter()
    cache, there = fed(ours), ours.place(*block(2))
    found = cost(cache, lambda: cache.feed(*there, [0, 1, 0]))
    assert found["device_to_device"] == (6 + 1) * ROW
    assert cache.starts() == [3, 0, 2]


@pytest.mark.parametrize(
    ("padding", "counts", "moved"), [("right", [1, 0, 2], 0), ("left", [1, 1, 1], 0), ("left", [0, 0, 1], 5)]
)
def test_a_trim_moves_rows_only_where_their_padding_changes(padding: str, counts: list[int], moved: int) -> None:
    cache = fed(adapter(), padding=padding)
    assert cost(cache, lambda: cache.trim(counts)).get("device_to_device", 0) == moved * ROW


@pytest.mark.parametrize("padding", WORDS["padding"])
def test_over_a_window_a_step_moves_the_new_rows_alone_until_the_block_has_gone_a_step_on(padding: str) -> None:
    ours = adapter()
    cache: Any = ours.open("ragged", CONFIG.changed(padding=padding, window=4))
    cache.feed(*block(9), [9, 9, 9])
    there = ours.place(*block(1))
    cache.feed(*there, [1, 1, 1])  # 3 old rows and a new one, in 16 slots, of which 10 were written
    moved = [cost(cache, lambda: cache.feed(*there, [1, 1, 1]))["device_to_device"] // ROW for _ in range(11)]
    assert moved == [3] * 6 + [3 * 4] + [3] * 4
    assert cache.sequences() == [21] * 3 and cache.holds() == [4] * 3


def test_a_sequence_that_outgrows_its_window_apart_from_the_others_moves_rows() -> None:
    ours = adapter()
    cache: Any = ours.open("ragged", CONFIG.changed(padding="right", window=2))
    cache.feed(*block(2), [1, 2, 2])
    cost(cache, lambda: cache.feed(*ours.place(*block(1)), [1, 1, 1]))
    assert cache.sequences() == [2, 3, 3] and cache.holds() == [2, 2, 2] and cache.starts() == [0, 0, 0]


def test_nothing_is_allocated_before_rows_come() -> None:
    ours = adapter()
    assert cost(ours, lambda: ours.open("ragged", CONFIG)) == {}
    cache: Any = ours.open("ragged", CONFIG)
    assert cost(cache, lambda: cache.feed(*block(2), [0, 0, 0])) == {}
    assert cache.history().keys.shape == (3, 2, 0, 8) and cache.positions().tolist() == [[-1, -1]] * 3


REARRANGED: dict[str, Callable[[Any, Any], None]] = {
    "filter": lambda cache, other: cache.filter([2, 0]),
    "repeat": lambda cache, other: cache.repeat(2),
    "extend": lambda cache, other: cache.extend(cache),
    "feed": lambda cache, other: cache.feed(*block(9), [9, 1, 0]),
    "join": lambda cache, other: cache.join([other]),
    "extract": lambda cache, other: cache.extract(1, other),
}


@pytest.mark.parametrize("name", REARRANGED)
def test_what_runs_out_of_memory_changes_nothing(name: str) -> None:
    runtime: Any = Scarce(adapter().runtime)
    ours = Caches("scarce", runtime, checks=True)
    cache, other = fed(ours), ours.open("growing", Config(step=1))
    other.append(*block(2, 1))
    before = [cache.read_sequence(s) for s in range(3)]
    ours.space.other(cache.one, 9)  # scratch space is there already
    runtime.left = 0
    assert raises(lambda: REARRANGED[name](cache, other))
    assert cache.sequences() == [1, 3, 2] and other.lengths().offset == 2
    for s, rows in enumerate(before):
        assert cache.read_sequence(s).keys.tobytes() == rows.keys.tobytes()


def test_an_extract_is_as_long_as_its_sequence_and_no_longer() -> None:
    ours = adapter()
    cache, other = fed(ours), ours.open("growing", Config(step=2))
    other.append(*block(7, 1))
    cache.extract(1, other)
    assert tuple(other.lengths()) == (3, 3, 3, 4)
    assert other.read("view").values[0].tobytes() == cache.read_sequence(1).values.tobytes()
