"""Frozen vectors: what they say is what the reference does, they tell all states apart, and a change is noticed."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from kvadapters.reference import Reference
from kvconform.generate import covers, frozen_covers
from kvconform.generate.registry import planned
from kvconform.generate.strategies import ring, snapshot
from kvconform.vectors import files
from kvref.arithmetic.rope_scaling import ends
from kvref.caches.growing import Growing
from kvref.caches.ring import Ring
from kvspec import notation
from kvspec.rope.scaling import YaRN, parsed
from kvspec.trace import from_json
from tools.freezing import covers as freeze_covers

FROZEN = [c for p in frozen_covers.chapters() for c in frozen_covers.load(p)]
SAMPLE = 3000
EVERY = max(1, sum(len(c.lines) for c in FROZEN) // SAMPLE)


def differing(frozen: frozen_covers.Cover) -> list[str]:
    """Traces, of a sample, to which the reference answers something else than is frozen."""
    sampled = list(frozen.frozen.items())[::EVERY]
    return [line for line, said in sampled if freeze_covers.answers(frozen.start, _ops(line)) != said]


AGAIN = "run `python -m tools.freeze_vectors answers --write` in tests/, if the reference is right"


def _ops(line: str) -> covers.Ops:
    return notation.operations(line)


@pytest.mark.parametrize("frozen", FROZEN, ids=lambda c: c.name)
def test_the_reference_does_what_is_frozen(frozen: frozen_covers.Cover) -> None:
    assert differing(frozen) == [], AGAIN


@pytest.mark.parametrize("frozen", FROZEN, ids=lambda c: c.name)
def test_every_frozen_trace_may_be_read_from_a_file(frozen: frozen_covers.Cover) -> None:
    for t in list(frozen.traces())[::EVERY]:
        assert from_json(t.to_json()) == t


TOLD_APART = [c for p in ("growing", "ring", "snapshot", "draft") for c in frozen_covers.load(p)]


@pytest.mark.parametrize("frozen", TOLD_APART, ids=lambda c: c.name)
def test_continuations_tell_all_states_apart(frozen: frozen_covers.Cover) -> None:
    assert frozen.told_apart and frozen.states > 1 and frozen.transitions > frozen.states


def test_covers_of_attention_exercise_scales_and_softcaps() -> None:
    frozen = files.read(files.FROZEN / files.name("covering", "attention"))["vectors"]
    assert {f"ATTN-{i}" for i in range(38, 43)} <= {clause for v in frozen for clause in v["exercises"]}


def test_traces_come_shortest_first_and_none_twice() -> None:
    for frozen in FROZEN:
        lengths = [line.count(";") for line in frozen.lines]
        assert lengths == sorted(lengths) and len(set(frozen.lines)) == len(frozen.lines)


class LosesItsIndex(Ring):
    """A restore puts the next row behind the last slot; nothing shows until there is one."""

    def restore(self, *args: Any) -> None:
        super().restore(*args)
        self.index = len(self.rows)


class KeepsItsHistory(Growing):
    """A rewind does not end the history."""

    def rewind(self, to: int) -> None:
        queries = self.queries
        super().rewind(to)
        self.queries = queries


@pytest.mark.parametrize("changed", [LosesItsIndex, KeepsItsHistory])
def test_a_changed_reference_is_noticed(changed: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reference, "caches", {**Reference.caches, changed.kind: changed})
    chapter = {"ring": "snapshot", "growing": "mask"}[changed.kind]
    assert any(differing(frozen) for frozen in frozen_covers.load(chapter))


@pytest.mark.parametrize(("chapter", "name"), [("ring", "ring window=2 step=1"), ("rope", "rope growing")])
def test_a_small_cover_is_computed_as_it_is_frozen(chapter: str, name: str) -> None:
    plan = next(p for p in planned()[chapter]() if p.name == name)
    frozen = next(c for c in frozen_covers.load(chapter) if c.name == name)
    closed = covers.closure(plan, largest=frozen.states)
    lines = ["; ".join(map(notation.words, ops)) for ops in freeze_covers.traces(plan, closed)]
    assert (tuple(lines), len(closed.states), closed.transitions) == (
        frozen.lines,
        frozen.states,
        frozen.transitions,
    )
    assert freeze_covers.told_apart(plan, closed)


def test_the_cover_of_rope_turns_rows_by_a_ramp_of_no_length() -> None:
    """Such a YaRN is turned by, and not refused: where its bounds are far above all turns, both ends are pair 0."""
    (frozen,) = (c for c in frozen_covers.load("rope") if c.name == "rope growing")
    turned = [(t, op) for t in frozen.traces() for op in t.ops if op.get("scaling", "").startswith("yarn")]
    lengths = {op["scaling"]: _length(op["scaling"], t.config.k_dim) for t, op in turned}
    assert min(lengths.values()) == 0 < max(lengths.values())


def _length(scaling: str, dims: int) -> Decimal:
    yarn = parsed(scaling)
    assert isinstance(yarn, YaRN)
    first, last = ends(yarn, dims, 10_000)
    return last - first


def test_the_answers_to_frozen_covers_are_frozen_again_without_visiting_states() -> None:
    frozen = json.loads(frozen_covers.path("residency").read_text(encoding="utf-8"))
    assert freeze_covers.answered("residency") == frozen


def test_without_continuations_states_are_not_told_apart() -> None:
    """The claim is computed and not taken for granted: what a snapshot holds shows only when it is restored."""
    plan = next(p for p in snapshot.plans() if p.start.config.window == 1)
    blind, closed = (
        covers.Plan(plan.name, plan.start, plan.moves, lambda _: [], plan.snapshots),
        covers.closure(plan),
    )
    assert freeze_covers.told_apart(plan, closed) and not freeze_covers.told_apart(blind, closed)


def test_an_alphabet_that_does_not_close_is_an_error() -> None:
    plan = next(p for p in ring.plans() if p.start.config.window == 3)
    with pytest.raises(RuntimeError, match="more than 4 states; the alphabet does not close"):
        covers.closure(plan, largest=4)


def test_what_is_planned_is_frozen() -> None:
    assert tuple(planned()) == frozen_covers.chapters()
    lines = sum(len(cover.lines) for chapter in frozen_covers.chapters() for cover in frozen_covers.load(chapter))
    assert frozen_covers.digest()["count"] == lines


@pytest.mark.parametrize("chapter", frozen_covers.chapters())
def test_a_frozen_file_is_text_with_a_trace_a_line(chapter: str) -> None:
    text = frozen_covers.path(chapter).read_text(encoding="utf-8")
    document = json.loads(text)
    assert document["licence"] == "CC0-1.0" and document["chapter"] == chapter
    assert document["traces"] == sum(len(c["traces"]) for c in document["covers"]) <= len(text.splitlines())
    assert freeze_covers.text(json.loads(text)) == text
