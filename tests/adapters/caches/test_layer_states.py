"""States of layers on a device: what an append costs, that memory does not grow, that faults of the kernel show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kvgpu.adapter import Caches
from kvgpu.runtimes.cuda_cpu import CudaCPURuntime
from kvref.arithmetic import fold
from kvspec.contract import Pair
from kvspec.geometry import DTYPES, Array, Config
from support import slow
from support.device import kernel_faults
from support.device.device_costs import cost, raises
from support.device.devices import Scarce, adapter

OF = "state,window:3,state,conv:3"
SHAPES = [((1, 1, 1), (1, 1, 1)), ((5, 3, 1), (2, 2, 3)), ((32, 4, 1), (1, 7, 2)), ((2, 1, 1), (4, 1, 1))]
"""Items of a group, and groups."""


def opened(on: Caches | None = None, dtype: str = "f16") -> Any:
    """A fresh cache of two states, a window and a convolution."""
    return (on or adapter()).open(
        "layers", Config(of=OF, layers=4, kv_heads=3, k_dim=5, v_dim=7, dtype=dtype, step=4)
    )


def rows(cache: Any, n: int, seed: int = 0) -> Pair:
    """Whole numbers from -8 to 8 for each layer: sums of a few of their products are exact."""
    config, random = cache.rows.together, np.random.default_rng((n, seed))
    made = (random.integers(-8, 9, config.shape(kind, n)) for kind in "kv")
    return Pair(*(a.astype(DTYPES[config.dtype]) for a in made))


def states(cache: Any) -> list[bytes]:
    """The states, by layer."""
    return [state.tobytes() for state in cache.states().values()]


def expected(appended: list[Pair]) -> list[bytes]:
    """What the rows of layers 0 and 2 come to."""
    found = list[Array]()
    for block in (0, 2):
        state = np.zeros((3, 5, 7), np.float32)
        for keys, values in appended:
            state = fold.folded(state, keys[block], values[block])
        found.append(state)
    return [state.tobytes() for state in found]


@pytest.mark.usefixtures("each_runtime")
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_are_folded_in_their_order_however_they_come(dtype: str) -> None:
    cache, appended = opened(dtype=dtype), list[Pair]()
    for n in (1, 3, 2, 1):
        appended.append(rows(cache, n, len(appended)))
        cache.append(*appended[-1])
        assert states(cache) == expected(appended)
    cache.rewind(0)
    assert states(cache) == expected([])
    cache.append(*appended[1])
    assert states(cache) == expected(appended[1:2])


@pytest.mark.usefixtures("each_runtime")
def test_a_snapshot_holds_the_numbers_and_a_restore_puts_them_back() -> None:
    cache, other = opened(), opened()
    first, second = rows(cache, 3), rows(cache, 2)
    cache.append(*first)
    saved = cache.snapshot(0)
    cache.append(*second)
    other.restore(saved, 3)
    other.append(*rows(cache, 1))
    for to, has in ((3, [first]), (0, [])):
        cache.restore(saved, to)
        assert states(cache) == expected(has)
    assert states(other) == expected([first, rows(cache, 1)])
    assert saved.nbytes == 2 * 4 * 3 * 5 * 7 + (2 + 2) * cache.rows.one.row_bytes


def test_states_are_one_launch_beside_that_of_the_rows_and_never_grow() -> None:
    cache = opened()
    there = [adapter().place(*rows(cache, n)) for n in (2, 1)]
    cache.append(*there[0])
    sizes, launches = set(), list[int]()
    for _ in range(8):
        launches.append(cost(cache, lambda: cache.append(*there[1]))["launches"])
        sizes.add(cache.folded.held)
    assert launches == [2] * 8 and sizes == {2 * 4 * 3 * 5 * 7}
    cache.free()
    assert cache.held() == 0


def test_an_append_for_which_memory_runs_out_moves_no_state() -> None:
    outcomes = list[bool]()
    for nth in range(4):
        scarce = Scarce(adapter().runtime)
        cache = opened(Caches("scarce", scarce))
        first = rows(cache, 2)
        cache.append(*first)
        cache.space._blocks.clear()
        scarce.left = nth
        outcomes.append(raises(lambda cache=cache: cache.append(*rows(cache, 90))))  # type: ignore[misc]
        scarce.left = 1 << 30
        assert cache.offset == (2 if outcomes[-1] else 92)
        assert not outcomes[-1] or states(cache) == expected([first])
    assert outcomes[0] and not outcomes[-1]


def _worked(ours: Caches) -> list[list[bytes]]:
    """States after appends and after a restore, of rows in each dtype."""
    found = list[list[bytes]]()
    for dtype in DTYPES:
        cache = opened(ours, dtype)
        for n in (2, 1, 4):
            cache.append(*rows(cache, n))
            found.append(states(cache))
        cache.rewind(0)
        cache.append(*rows(cache, 2))
        found.append(states(cache))
    return found


@pytest.mark.parametrize("shape", slow.one_in(2, [(shape,) for shape in SHAPES]), ids=str)
def test_any_launch_shape_does_all_the_work(shape: Any) -> None:
    assert _worked(Caches("shaped", CudaCPURuntime(shape=lambda work: shape), checks=True)) == _worked(adapter())


FAULTS = {
    "every append from nothing": ("anew ? 0.0f : *state", "0.0f"),
    "what was there before is never forgotten": ("anew ? 0.0f : *state", "*state"),
    "the first row of several": ("t < rows; ++t", "t < 1; ++t"),
    "from the last row to the first": ("i64 t = 0; t < rows; ++t", "i64 t = rows - 1; t >= 0; --t"),
    "nothing fades": ("0.5f * x", "x"),
    "the rows of the first state for all": ("blocks[s]", "blocks[0]"),
    "states as if all layers had one": ("blocks[s]", "s"),
    "the rows of the first head": ("blocks[s] * heads + head", "blocks[s] * heads"),
    "keys where values begin": ("values + values_at", "values + keys_at"),
}
"""Faults of the kernel, each as a change to its text."""


@pytest.mark.slow
def test_faults_of_the_kernel_are_found() -> None:
    worked = kernel_faults.answers("fold", FAULTS, _worked)
    assert [each != worked[0] for each in worked] == [False] + [True] * len(FAULTS)
    assert worked[0] == _worked(adapter())
