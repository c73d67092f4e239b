"""When the device runs out of memory: the allocation that fails changes nothing, whichever it is."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

from kvgpu.adapter import Caches
from kvspec.geometry import Config
from support.device.devices import Scarce, adapter
from support.slow import one_in
from support.twins import Twins

pytestmark = pytest.mark.usefixtures("each_runtime")
CONFIG = Config(batch=2, window=4, step=4)


def _twins(kind: str, appends: tuple[int, ...]) -> Twins:
    """A cache with these appends, and snapshots p of [0, 2) and c of [2, 3)."""
    twins = Twins(Caches("scarce", Scarce(adapter().runtime), checks=True))
    twins.open(kind, CONFIG, "B")
    twins.append(2, "B")
    twins.do({"op": "snapshot", "name": "p", "start": 0, "cache": "B"})
    twins.append(1, "B")
    twins.do({"op": "snapshot", "name": "c", "start": 2, "cache": "B"})
    twins.open(kind, CONFIG)
    for n in appends:
        twins.append(n)
    return twins


OPERATIONS: dict[str, Callable[[Any, dict[str, Any], Any], Any]] = {
    "append": lambda cache, saved, rows: cache.append(*rows),
    "snapshot": lambda cache, saved, rows: cache.snapshot(0),
    "restore": lambda cache, saved, rows: cache.restore(saved["p"], 2),
    "split": lambda cache, saved, rows: cache.split(saved["p"], 1),
    "merge": lambda cache, saved, rows: cache.merge(saved["p"], saved["c"]),
    "view": lambda cache, saved, rows: cache.read("view"),
}

FAILURES = {
    ("growing", (3,)): {"append": 2, "snapshot": 1, "restore": 0, "split": 2, "merge": 1, "view": 0},
    ("growing", ()): {"append": 2, "snapshot": 0, "restore": 1, "split": 2, "merge": 1, "view": 0},
    ("ring", ()): {"append": 2, "snapshot": 0, "restore": 1, "split": 0, "merge": 0, "view": 0},
    ("ring", (9, 1, 1)): {"append": 2, "snapshot": 1, "restore": 0, "split": 0, "merge": 0, "view": 1},
}
"""How many allocations each operation makes after these appends, the scratch space it needs among them."""


@pytest.mark.parametrize("operation", one_in(3, OPERATIONS))
@pytest.mark.parametrize(("kind", "appends"), FAILURES)
def test_the_nth_allocation_fails(kind: str, appends: tuple[int, ...], operation: str) -> None:
    expected = FAILURES[kind, appends][operation]
    assert [_fails(kind, appends, operation, nth) for nth in range(expected + 1)] == [True] * expected + [False]


def _fails(kind: str, appends: tuple[int, ...], operation: str, nth: int) -> bool:
    """Whether it ran out of memory; if so, that nothing has changed."""
    twins = _twins(kind, appends)
    cache, saved = twins.sessions[1].caches["A"], twins.sessions[1].snapshots
    before, rows = _seen(cache, saved), twins.rows(60)
    cache.space.runtime.left = nth
    try:
        OPERATIONS[operation](cache, saved, rows)
    except MemoryError:
        cache.space.runtime.left = 1 << 30
        assert _seen(cache, saved) == before
        _goes_on(twins)
        return True
    return False


def _seen(cache: Any, saved: dict[str, Any]) -> Any:
    """All that can be told of cache and snapshots, and the memory in use, scratch space apart."""
    gc.collect()
    live = cache.space.runtime.meter.live_bytes - sum(b.nbytes for b in cache.space._blocks.values())
    state = cache.read("state") or ()
    return (
        cache.lengths(),
        [a.tobytes() for a in state],
        cache.queries,
        {n: s.nbytes for n, s in saved.items()},
        live,
    )


def _goes_on(twins: Twins) -> None:
    """From here on it does what the reference does, which never heard of the failure."""
    for n in (0, 1, 2):
        twins.append(n)
        twins.do({"op": "view"})
    twins.do({"op": "merge", "parent": "p", "child": "c", "name": "m"})
    twins.do({"op": "split", "name": "m", "at": 1, "parent": "p", "child": "c"})
    twins.do({"op": "restore", "name": "c", "to": 3})
    twins.append(1)
