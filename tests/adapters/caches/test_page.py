"""Paged caches on a device: as the reference has them, at a cost that is counted, unharmed when memory runs out."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvconform.generate.strategies import page
from kvconform.judge import trial
from kvgpu import kernels
from kvgpu.adapter import Caches
from kvgpu.adapters import CudaCPU
from kvgpu.memory.page_pool import runs
from kvgpu.runtimes.opencl import OpenCLRuntime
from kvspec.contract import Attention, Pair, description
from kvspec.geometry import DTYPES, Array, Config
from kvspec.reading.clauses import examples_of
from kvspec.session.driver import Session
from support import random_traces, slow
from support.device.device_costs import cost, raises
from support.device.devices import ADAPTERS, NAMES, Scarce, adapter


@pytest.mark.parametrize("more", [(), ("attend",) * 6], ids=["rows", "attending"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", slow.counts(6, 60))
def test_random_operations_observe_the_same(count: int, name: str, more: tuple[str, ...]) -> None:
    random_traces.observe_the_same(ADAPTERS[name](), random_traces.drawn(page.explored, more, count=count))


CONFIG = Config(kv_heads=2, k_dim=8, v_dim=6, page_size=4, pages=6)
ROW = 2 * 2 * (8 + 6)
"""Bytes of a row of CONFIG, keys and values of both heads."""


def rows(n: int, config: Config = CONFIG) -> Pair:
    """Rows of arbitrary bits."""
    return Pair(*(_bits(config.shape(kind, n)) for kind in "kv"))


def _bits(shape: tuple[int, ...]) -> Array:
    size = int(np.prod(shape))
    return np.random.default_rng(7).integers(0, 256, 2 * size, np.uint8).view(DTYPES["f16"]).reshape(shape)


def filled(adapter: Caches, n: int = 6, config: Config = CONFIG) -> Any:
    """A pool with sequence 0 of n rows, and sequence 1 that shares all of them."""
    pages: Any = adapter.open("page", config)
    pages.admit()
    pages.append(*rows(n, config))
    pages.fork(0, n)
    return pages


def test_an_append_within_a_page_is_one_launch_and_nothing_else() -> None:
    ours = adapter()
    pages = filled(ours, 4)
    there = ours.place(*rows(1))
    pages.append(*there)
    assert [cost(pages, lambda: pages.append(*there)) for _ in range(3)] == [
        {"launches": 1, "device_to_device": ROW}
    ] * 3


def test_new_pages_side_by_side_are_one_more_launch_and_a_copy_another() -> None:
    ours = adapter()
    pages = filled(ours)
    there = ours.place(*rows(7))
    found = cost(pages, lambda: pages.append(*there, 1))
    assert found == {"launches": 3, "device_to_device": (2 + 7) * ROW}
    assert pages.table(1) == [0, 2, 3, 4]


def test_a_fork_moves_no_row_and_launches_nothing() -> None:
    pages = filled(adapter())
    entries = 2 * 4
    assert cost(pages, lambda: pages.fork(0, 5)) == {
        "allocations": 1,
        "live_bytes": CONFIG.pages * 4,
        "host_to_device": entries,
        "synchronisations": 1,
    }


@pytest.mark.parametrize("to", [0, 1, 4])
def test_going_back_costs_the_device_nothing(to: int) -> None:
    pages = filled(adapter())
    assert cost(pages, lambda: pages.truncate(1, to)) == {}


def test_dropping_costs_nothing_and_the_next_sequence_gets_the_table() -> None:
    pages = filled(adapter())
    assert cost(pages, lambda: pages.drop(0)) == {}
    assert cost(pages, lambda: pages.admit()) == {}
    assert cost(pages, lambda: pages.admit()) == {"allocations": 1, "live_bytes": CONFIG.pages * 4}


@pytest.mark.parametrize(("table", "n"), [([0.0], 1), (["0"], 1), ([0, None], 0), ([0], 1.0), (np.zeros(1), 1)])
@pytest.mark.parametrize("name", ["reference", "opencl", "cuda-cpu"])
def test_a_gather_takes_whole_numbers_alone(name: str, table: Any, n: Any) -> None:
    pages = filled({"reference": Reference, **ADAPTERS}[name]())
    with pytest.raises(TypeError):
        pages.gather(table, n)
    assert pages.gather(np.array([0, 1]), np.int64(6)).keys.tobytes() == pages.read_sequence(0).keys.tobytes()


def test_freed_pages_that_lie_side_by_side_are_poisoned_in_one_launch() -> None:
    pages = filled(adapter(), 20, CONFIG.changed(debug=1))
    assert cost(pages, lambda: pages.truncate(1, 1)) == {}
    assert cost(pages, lambda: pages.drop(0)) == {"launches": 1}
    assert pages.references() == [1, 0, 0, 0, 0, 0]


def test_an_attend_through_a_table_is_two_launches_more() -> None:
    ours = adapter()
    pages = filled(ours, 4)
    pages.append(*rows(1))
    pages.truncate(1, 0)
    queries, out = ours.place(np.ones((1, 4, 1, 8), np.float32), np.zeros((1, 4, 1, 6), np.float32))
    there = ours.place(*rows(1))
    pages.attend(queries, *there, Attention(), out, 0)
    found = cost(pages, lambda: pages.attend(queries, *there, Attention(), out, 0))
    assert found == {"launches": 3, "device_to_device": ROW}


def test_pages_are_handed_out_in_runs() -> None:
    assert list(runs([])) == []
    assert list(runs([3])) == [(3, 1)]
    assert list(runs([3, 4, 6, 5, 4])) == [(3, 2), (6, 1), (5, 1), (4, 1)]


OPERATIONS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "admit": (lambda pages: pages.admit(), 1),
    "fork": (lambda pages: pages.fork(0, 3), 1),
    "append": (lambda pages: pages.append(*rows(200), 1), 1),
    "gather": (lambda pages: pages.gather([0, 1], 6), 2),
    "attend": (lambda pages: pages.attend(np.ones((1, 2, 9, 8), np.float32), *rows(9), Attention()), 4),
    "truncate": (lambda pages: pages.truncate(0, 1), 0),
    "drop": (lambda pages: pages.drop(0), 0),
}
"""Each with how many allocations it makes at first: scratch space is kept."""

LARGE = Config(kv_heads=2, k_dim=8, v_dim=6, page_size=4, pages=60, debug=1)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_nth_allocation_fails(operation: str) -> None:
    do, expected = OPERATIONS[operation]
    assert [_fails(do, nth) for nth in range(expected + 1)] == [True] * expected + [False]


def _fails(do: Callable[[Any], Any], nth: int) -> bool:
    """Whether it ran out of memory; if so, that nothing has changed."""
    runtime = Scarce(adapter().runtime)
    pages = filled(Caches("scarce", runtime), 6, LARGE)
    before, pages.space._blocks = _seen(pages), {}
    runtime.left = nth
    failed = raises(lambda: do(pages))
    runtime.left = 1 << 30
    if failed:
        assert _seen(pages)[:4] == before[:4]
    return failed


def _seen(pages: Any) -> Any:
    """All that can be told of a pool."""
    gc.collect()
    numbers = range(len(pages.sequences()))
    contents = [a.tobytes() for s in numbers for a in pages.read_sequence(s)]
    return pages.sequences(), [pages.table(s) for s in numbers], pages.references(), contents


def test_everything_a_pool_allocates_is_given_back() -> None:
    ours = adapter()
    gc.collect()
    meter = ours.runtime.meter
    before = meter.live_bytes
    pages = filled(ours)
    held = meter.live_bytes
    for _ in range(3):
        pages.admit()
        pages.drop(2)
    assert meter.live_bytes == held + CONFIG.pages * 4  # the table that the next one gets
    del pages
    gc.collect()
    assert meter.live_bytes - before < 1 << 13, "scratch space alone is kept"


SHAPES = [((1, 1, 1), (1, 1, 1)), ((5, 3, 1), (2, 2, 3)), ((32, 4, 1), (1, 7, 2)), ((2, 1, 1), (4, 1, 1))]
"""Items of a group, and groups."""


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_any_launch_shape_does_all_the_work(shape: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from kvgpu.runtimes import launch_shapes

    whole = _worked(adapter())
    monkeypatch.setattr(launch_shapes, "gpu", lambda work: shape)
    assert _worked(CudaCPU(checks=True)) == whole


def _worked(ours: Caches) -> Any:
    """What a pool shows after a little of everything."""
    pages = filled(ours, 9, CONFIG.changed(debug=1, pages=9))
    pages.append(*rows(6), 1)
    pages.truncate(0, 5)
    pages.append(*rows(9))
    found = pages.gather(pages.table(1)[::-1][1:], 7)
    pages.drop(1)
    peeked = [a.tobytes() for page in range(9) for a in pages.peek(page)]
    return pages.sequences(), pages.table(0), [a.tobytes() for a in (*found, *pages.read_sequence(0))], peeked


FAULTS = {
    "every row in the first slot": ("slot = p - entry * (u32)size", "slot = 0"),
    "every page the first": ("(i64)table[entry] * heads", "(i64)table[0] * heads"),
    "heads of all pages before the next head": (
        "((i64)table[entry] * heads + head) * size",
        "((i64)table[entry] + head) * size",
    ),
    "rows in at the beginning of the sequence": ("const u32 p = (u32)(first + t)", "const u32 p = (u32)t"),
    "entries all alike": ("table[first + i] = (int)(page + i)", "table[first + i] = (int)page"),
    "values not poisoned": ("else if (i < keys_bytes + values_bytes)", "else if (i < keys_bytes)"),
    "keys poisoned at the beginning of the pool": ("to[keys + i] = 0xff", "to[i] = 0xff"),
}
"""Faults of the kernels, each as a change to their text; none of them writes outside the pool."""


@pytest.mark.parametrize("fault", slow.one_in(4, FAULTS))
def test_a_fault_of_the_kernels_is_found(fault: str) -> None:
    text = kernels.source("cl")
    old, new = FAULTS[fault]
    assert old in text
    ours = Caches("faulty", OpenCLRuntime(text=text.replace(old, new)), checks=True)
    about = description(ours.describe())
    examples = [e.trace for e in examples_of("page")]
    observed = trial.observables(examples[0], about, "storage")
    assert any(trial.run(trace, Session(ours, observed), about, "storage").failed for trace in examples)
