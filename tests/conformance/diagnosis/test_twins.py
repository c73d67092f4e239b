"""A near-twin of a known bug, wrong only under a condition, is not named as that bug; the bug itself is."""

from __future__ import annotations

from typing import Any

import pytest

from kvadapters.reference import Reference
from kvconform.bugs.known_bugs import known_bugs
from kvconform.bugs.mutant import Mutant
from kvconform.diagnosis import diagnose
from kvconform.diagnosis.neighbours import neighbours, text_of
from kvconform.runner.record.record import kept
from kvspec import notation
from kvspec.contract import description
from kvspec.records.run import KnownBug
from support.fakes.twins import TWINS, Twin
from support.running.local_adapter import LocalAdapter
from support.slow import one_in

KNOWN = known_bugs()


def diagnosed(adapter: Any, trace: str, monkeypatch: pytest.MonkeyPatch, *bugs: Mutant) -> list[KnownBug]:
    """What the diagnosis names for a trace that fails, made as short as can be, where only these bugs are known."""
    monkeypatch.setattr(diagnose, "known_bugs", lambda: {bug.id: bug for bug in bugs} or KNOWN)
    under_test = LocalAdapter(adapter)
    under_test.judge(notation.from_sentence(trace), "example")
    failures = kept(under_test.tally)
    assert failures, "the trace must fail"
    found = diagnose.diagnose(failures, lambda t: under_test.run(t, past=True), under_test.adapter)
    assert failures[0].key() in found, "the time was up"
    return found[failures[0].key()]


@pytest.mark.parametrize("twin", one_in(3, TWINS), ids=lambda twin: twin.id)
def test_a_near_twin_is_not_named_as_the_bug(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    assert diagnosed(twin.adapter(), twin.trace, monkeypatch, KNOWN[twin.of]) == []


@pytest.mark.parametrize("twin", one_in(8, TWINS), ids=lambda twin: twin.id)
def test_the_bug_itself_is_named_first(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    bug = KNOWN[twin.of]
    assert [b.id for b in diagnosed(bug.adapter(), twin.trace, monkeypatch)][:1] == [bug.id]


@pytest.mark.parametrize("twin", one_in(20, TWINS), ids=lambda twin: twin.id)
def test_no_other_bug_is_named_in_its_place(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    assert diagnosed(twin.adapter(), twin.trace, monkeypatch) == []


STALE = KNOWN["stale-cursor/RingStaleCursor"]
WRAPPED = "ring window=2: append 2; rewind 1; append 1"


def test_each_neighbour_that_is_counted_shows_the_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours on which neither differs from the spec are no evidence, however many there are."""
    (named,) = diagnosed(STALE.adapter(), WRAPPED, monkeypatch, STALE)
    under_test = LocalAdapter(STALE.adapter())
    shortest = notation.from_sentence("ring kv_heads=1 window=2: append 2; rewind 1; append 1")
    near = neighbours(shortest, under_test.adapter)
    wrong = [t for t in near if under_test.run(t, past=True).failed]
    assert named.fits.traces == 1 + len(wrong) < len(near)


def test_bugs_that_behave_alike_are_all_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug that is known under two names, and one that differs on a trace far from the failing one."""
    again = Mutant("again/Same", "RING", "The same.", STALE.clauses, STALE.adapter)
    named = diagnosed(STALE.adapter(), WRAPPED, monkeypatch, STALE, again)
    assert [bug.id for bug in named] == [STALE.id, again.id]


def test_a_bug_that_shows_on_one_trace_alone_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnose, "neighbours", lambda trace, about: [])
    assert diagnosed(STALE.adapter(), WRAPPED, monkeypatch, STALE) == []


def test_neighbours_have_other_masks_queries_kinds_geometries_and_lives() -> None:
    about = description(Reference().describe())
    trace = notation.from_sentence("growing kv_heads=1: append 3; mask causal & window=2")
    near = neighbours(trace, about)
    assert {t.kind for t in near} >= {"growing", "ring", "bounded"}
    for field, least in {"k_dim": 3, "v_dim": 3, "kv_heads": 3, "batch": 3, "dtype": 3}.items():
        assert len({getattr(t.config, field) for t in near}) >= least, field
    asked = [(op, t.ops[i - 1]) for t in near for i, op in enumerate(t.ops) if op["op"] == "mask" and i]
    assert len({str(op["parts"]) for op, _ in asked}) > 5 and len({str(before.get("n")) for _, before in asked}) > 3
    assert any(len(t.ops) >= 2 * len(trace.ops) for t in near) and any(t.ops[0]["op"] == "run" for t in near)
    assert len({text_of(t) for t in near}) == len(near)
