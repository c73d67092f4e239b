"""Explored snapshots, several alive at once: what is drawn, and planted bugs that nothing else shows."""

from __future__ import annotations

from functools import cache

import pytest

from kvadapters.reference import Reference
from kvconform.bugs.known_bugs import common_in
from kvconform.bugs.mutant import Mutant
from kvconform.generate.registry import explorations
from kvconform.generate.strategies import sample, snapshot
from kvconform.oracle.follow import ModelledTrace
from kvspec.operations.table import caches_with
from kvspec.trace import Trace
from support.running.local_adapter import LocalAdapter
from support.slow import one_in

SEEDS = 0, 1, 2
BUGS = list(common_in("snapshots"))
KINDS = caches_with("restore")
OTHERS = [e for e in explorations()["snapshot"] if not e.name.startswith("several")]


@cache
def drawn(kind: str, seed: int) -> list[Trace]:
    return sample.some(snapshot.several(kind), 60, seed)


def restored(trace: Trace) -> list[str]:
    """The snapshots that were restored, in that order."""
    modelled = ModelledTrace(trace)
    results = [(op, modelled.follow(op).result) for op in trace.ops]
    return [op["name"] for op, result in results if op["op"] == "restore" and result == "ok"]


def below(trace: Trace) -> bool:
    """Whether a snapshot was restored after a rewind below its start, and two appends or more."""
    modelled, starts, appends = ModelledTrace(trace), dict[str, int](), dict[str, int]()
    for op in trace.ops:
        if op["op"] == "restore" and appends.get(op["name"], 0) >= 2:
            return True
        modelled.follow(op)
        if op["op"] == "snapshot":
            starts[op["name"]] = op.get("start", 0)
        if op["op"] == "rewind":
            appends |= dict.fromkeys((name for name, start in starts.items() if op["to"] < start), 0)
        if op["op"] == "append":
            appends = {name: n + 1 for name, n in appends.items()}
    return False


@pytest.mark.parametrize("seed", SEEDS)
def test_rewinds_go_below_the_start_of_a_snapshot_that_is_restored(seed: int) -> None:
    assert sum(map(below, drawn("growing", seed))) > 40


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_several_are_alive_and_all_are_restored_in_another_order(kind: str, seed: int) -> None:
    orders = [restored(t) for t in drawn(kind, seed)]
    assert sum(len(order) >= 4 for order in orders) > 20
    assert sum(len(order) >= 3 and order != sorted(order) for order in orders) > 20


@pytest.mark.parametrize("kind", KINDS)
def test_the_reference_passes(kind: str) -> None:
    under_test = LocalAdapter(Reference())
    assert not any(under_test.run(t).failed for t in drawn(kind, 3)[:15])


@pytest.mark.parametrize("mutant", BUGS, ids=lambda m: m.id)
def test_a_bug_is_found_by_three_seeds(mutant: Mutant) -> None:
    under_test = LocalAdapter(mutant.adapter())
    for seed in SEEDS:
        assert sum(under_test.run(t).failed for t in drawn("growing", seed)[:20]) > 5


@pytest.mark.parametrize(("mutant", "seed"), one_in(6, [(m, s) for m in BUGS for s in SEEDS]))
def test_other_explorations_do_not_find_it(mutant: Mutant, seed: int) -> None:
    """What several snapshots are drawn for: where others find it too, it says nothing of them."""
    under_test = LocalAdapter(mutant.adapter())
    traces = (t for e in OTHERS for t in sample.some(e.strategy(), 60, seed))
    assert not any(under_test.run(t).failed for t in traces)
