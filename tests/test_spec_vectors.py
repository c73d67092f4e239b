"""The frozen covers are what the reference does today, and the laws hold on it and on the list model."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from local import LocalBench

from kvadapters.reference import Reference
from kvconform import cover, laws, vectors
from kvconform.suite import common
from kvref.growing import Growing
from kvref.ring import Ring
from kvspec.contract import PROFILES
from kvspec.notation import operation

SAMPLE = 12
"""Traces of each cover that are looked at here; `python -m kvconform.vectors` looks at all."""


def sampled(frozen: vectors.Cover) -> list[int]:
    return random.Random(frozen.name).sample(range(len(frozen.lines)), min(SAMPLE, len(frozen.lines)))


@pytest.mark.parametrize("profile", PROFILES)
def test_the_reference_does_what_is_frozen(profile: str) -> None:
    for frozen in vectors.load(profile):
        for i in sampled(frozen):
            ops = tuple(operation(o) for o in frozen.lines[i].split("; "))
            assert cover.digest(frozen.start, ops) == frozen.digests[i], f"{frozen.name}: {frozen.lines[i]}"


def test_a_changed_reference_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ring, "buffered", property(lambda self: len(self.rows)))
    frozen = vectors.load("ring")[-1]
    now = [cover.digest(frozen.start, tuple(map(operation, frozen.lines[i].split("; ")))) for i in sampled(frozen)]
    assert now != [frozen.digests[i] for i in sampled(frozen)]


@pytest.mark.parametrize("profile", ["growing", "ring", "snapshot"])
def test_the_continuations_tell_all_states_apart(profile: str) -> None:
    assert all(frozen.told_apart for frozen in vectors.load(profile))


def test_covers_are_computed_as_they_are_frozen() -> None:
    from kvconform.strategies import ring

    (plan,) = [p for p in ring.plans() if p.name == "ring window=3 step=2"]
    (frozen,) = [c for c in vectors.load("ring") if c.name == plan.name]
    closed = cover.closure(plan)
    assert (len(closed.states), closed.transitions) == (frozen.states, frozen.transitions)
    assert len(list(cover.traces(plan, closed))) == len(frozen.lines)


def drawn(law: laws.Law, count: int = 25) -> list[laws.Sides]:
    found: list[laws.Sides] = []

    @settings(max_examples=count, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(law.strategy())
    def collect(sides: laws.Sides) -> None:
        found.append(sides)

    collect()
    return found


def name(law: laws.Law) -> str:
    return f"{law.clause}-{law.profile}"


@pytest.mark.parametrize("level", ["storage", "visible"])
@pytest.mark.parametrize("law", laws.LAWS, ids=name)
def test_the_laws_hold_on_the_reference_and_the_list_model(law: laws.Law, level: Any) -> None:
    bench = LocalBench(Reference())
    bench.adapter = bench.adapter.at_most(level)
    for sides in drawn(law):
        left, right = bench.run(sides.left), bench.run(sides.right)
        assert not left.failed and not right.failed
        assert laws.broken(sides, left, right) == ""


class Growling(Growing):
    """Loses what is shared between two ways of doing the same."""

    def append(self, keys: Any, values: Any) -> None:
        if self.offset == 4 and keys.shape[2] > 1:
            keys, values = keys[:, :, ::-1], values[:, :, ::-1]
        super().append(keys, values)


class Broken(Reference):
    caches = Reference.caches | {"growing": Growling}


def test_a_law_can_be_broken() -> None:
    bench = LocalBench(Broken(), examples=200)
    (law,) = [x for x in laws.LAWS if x.clause == "GROW-19"]
    with bench.judging("law"):
        common.law(bench, law)
        assert "GROW-19" in bench.tally.own or bench.tally.failing


def test_laws_compare_positions_not_serials() -> None:
    (law,) = [x for x in laws.LAWS if x.clause == "RING-29"]
    sides = drawn(law, 40)
    assert any(len(s.left.ops) > len(s.right.ops) for s in sides)
    assert isinstance(law.strategy(), st.SearchStrategy)
