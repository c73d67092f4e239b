"""Whatever an adapter claims is explored, on the kinds that it claims; and what its claims shut out is told."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from kvadapters.reference import Reference
from kvconform.checks import exploration, large
from kvconform.checks.check import Check
from kvconform.checks.suite import selected, shut_out
from kvconform.generate.claims.fit_to_adapter import fitted
from kvconform.generate.registry import explorations
from kvconform.generate.strategies import sample
from kvconform.generate.strategies.exploration import Exploration
from kvconform.runner.settings import Settings
from kvspec.contract import CHAPTERS, Description, description
from kvspec.notation import from_sentence
from kvspec.operations.table import OF_KIND, parts_of
from kvspec.registry import KINDS, RECORDS
from kvspec.trace import Trace
from support.running.command_line import kvconform
from support.running.local_adapter import LocalAdapter
from support.slow import one_in


def claiming(*chapters: str, **claims: Any) -> Description:
    return description({"name": "some", "chapters": {**dict.fromkeys(chapters, "storage"), **claims}})


def running(claim: Description) -> Iterator[tuple[str, Exploration]]:
    """The explorations that run for a claim, each with its chapter."""
    each = {f"{c}/explore/{e.name}": (c, e) for c, several in explorations().items() for e in several}
    yield from (each[check.id] for check in exploration.checks() if not check.lacks(claim.chapters))


def traces(claim: Description, chapter: str) -> list[Trace]:
    """A few traces that such an adapter is judged on, of explorations that are about a chapter."""
    of = [e for c, e in running(claim) if chapter in (c, *e.needs)]
    return [t for e in of for t in fitted(sample.some(e.drawn(claim.chapters), 24, seed=1), claim)]


def performed(each: Iterable[Trace]) -> set[str]:
    return {part["op"] for trace in each for op in trace.ops for part in parts_of(op)}


PAIRS = [
    (kind, chapter)
    for kind in KINDS
    for chapter in CHAPTERS
    if chapter not in KINDS and {o.name for o in RECORDS[chapter].operations} & set(OF_KIND[kind])
]
"""Claims of a kind and one other chapter that has operations on it."""


@pytest.mark.parametrize(("kind", "chapter"), one_in(4, PAIRS))
def test_each_chapter_of_a_claim_of_one_kind_and_one_other_is_explored(kind: str, chapter: str) -> None:
    claim = claiming(kind, chapter)
    assert traces(claim, kind), "the kind itself"
    assert performed(traces(claim, chapter)) & {o.name for o in RECORDS[chapter].operations}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_from_the_device_are_explored_on_every_kind(kind: str) -> None:
    found = traces(claiming(kind, "residency"), "residency")
    assert any(part.get("resident") for trace in found for op in trace.ops for part in parts_of(op))


@pytest.mark.parametrize("kind", ["growing", "ring", "store", "page"])
def test_attention_that_turns_rows_is_explored_on_the_kind_that_is_claimed(kind: str) -> None:
    found = traces(claiming(kind, "attention", "rope"), "rope")
    assert any(part.get("rope") is not None for t in found for op in t.ops for part in parts_of(op))


def test_rounds_are_explored_with_masks_alone_or_snapshots_alone() -> None:
    for other, op in (("mask", "mask"), ("snapshot", "snapshot")):
        found = traces(claiming("growing", "draft", other), "draft")
        assert {"draft", "commit", op} <= performed(found)


def checks(claim: Description) -> tuple[list[Check], dict[str, str]]:
    settings = Settings(adapter="some")
    return selected(settings, claim), shut_out(settings, claim)


@pytest.mark.parametrize("chapters", [("growing",), ("growing", "attention", "rope"), ("ring", "draft"), ("page",)])
def test_each_check_of_a_claimed_chapter_runs_or_is_told(chapters: tuple[str, ...]) -> None:
    from kvconform.checks.suite import suite

    claim = claiming(*chapters)
    run, told = checks(claim)
    every = {c.id for c in suite().values() if c.chapter in chapters and "/example/" not in c.id}
    assert every <= {c.id for c in run} | told.keys()
    assert not told.keys() & {c.id for c in run}


def test_what_is_missing_is_named() -> None:
    _, told = checks(claiming("growing", "attention", "rope"))
    assert told["attention/explore/ring"] == "takes ring"
    assert told["attention/explore/store"] == "takes store"
    assert told["rope/law/ROPE-27/ring"] == "takes ring"
    assert "rope/explore/rope" not in told
    _, told = checks(claiming("draft", "bounded"))
    assert told["draft/explore/draft"] == "takes growing or ring"


ROOT = Path(__file__).parents[3]


class NoPlans(Reference):
    """It cannot plan."""

    def describe(self) -> dict[str, Any]:
        claims = {"growing": "storage", "mem": {"level": "storage", "without": ["plan"]}}
        return {**super().describe(), "chapters": claims}


def test_a_check_of_which_an_ability_that_is_missing_leaves_nothing_is_told() -> None:
    under_test = LocalAdapter(NoPlans())
    size = next(s for s in large.sizes() if s.name == "times freed, growing")
    (fine,) = (c for c in exploration.checks() if c.id == "growing/explore/growing")
    (rest,) = (c for c in exploration.checks() if c.id == "mem/explore/growing")
    for check in (fine, rest):
        with under_test.judging(check.id) as tally:
            check.run(under_test)
        assert not tally.shut_out, "fits are left"
    claims = {"growing": "storage", "mem": {"level": "storage", "with": []}}
    under_test.adapter = description({"name": "none", "chapters": claims})
    with under_test.judging(rest.id) as tally:
        rest.run(under_test)
    assert list(tally.shut_out) == [rest.id] and "mem.plan" in tally.shut_out[rest.id]
    assert size.needs == {"growing", "mem"}


def test_a_run_tells_it_in_its_record_and_its_reports(tmp_path: Path) -> None:
    name, report = f"{__name__}:Small", str(tmp_path / "report")
    done = kvconform("run", name, "--quick", "--chapter", "attention", "--report", report, cwd=ROOT)
    first = "attention/cover/ring-window=1"  # the first few are told, the record has all
    assert "takes ring" in done.stdout and first in done.stdout
    record = json.loads((tmp_path / "report" / "record.json").read_text())
    assert record["shut_out"]["attention/explore/ring"] == "takes ring"
    for page in ("report.md", "report.html"):
        assert first in (tmp_path / "report" / page).read_text()


class Small(Reference):
    """Attention over growing caches alone."""

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "chapters": {"growing": "visible", "attention": "visible"}}


@pytest.mark.parametrize("kind", ["ragged", "growing", "ring"])
def test_a_claim_of_one_kind_loses_no_trace_to_caches_of_others_beside_it(kind: str) -> None:
    """What opens a kind that is not claimed is left out of a trace, with what is done to it, and no more."""
    claim = claiming(kind)
    drawn = [t for c, e in running(claim) if c == kind for t in sample.some(e.drawn(claim.chapters), 24, seed=1)]
    judged = [*fitted(drawn, claim)]
    assert len(judged) >= 0.9 * len(drawn)
    assert all(op.get("kind", kind) == kind for trace in judged for op in trace.ops)


@pytest.mark.parametrize(
    ("ability", "text"),
    [
        ("store.full", "store layers=1 max_len=1: append 1; append 1"),
        ("store.apart", "store layers=2 max_len=2: append 1; append 1 layer=0"),
        ("batch.most", "store layers=1 max_len=1: batch 1; batch 33"),
        ("batch.full", "store layers=1 max_len=1: batch 1; step; step"),
        ("batch.counts", "store layers=1 max_len=2: append 1; batch 1; scatter 0 2"),
        ("batch.apart", "store layers=1 max_len=2: append 1; batch 1; scatter 0 1 layer=0"),
    ],
)
def test_a_store_is_not_asked_for_what_it_does_not_count(ability: str, text: str) -> None:
    trace, (chapter, _, name) = from_sentence(text), ability.partition(".")
    assert any(t.ops[-1] == trace.ops[-1] for t in fitted([trace], claiming("store", "batch")))
    less = claiming("store", "batch", **{chapter: {"level": "visible", "without": [name]}})
    assert not any(t.ops[-1] == trace.ops[-1] and len(t.ops) == len(trace.ops) for t in fitted([trace], less))


SUITING, OTHER = "growing: append 1", "ring window=2: append 1"


@pytest.mark.parametrize(("words", "judged"), [((SUITING,), 9), ((SUITING, OTHER), 9), ((OTHER,), 0)])
def test_where_few_of_what_is_drawn_suits_a_claim_more_is_drawn(words: tuple[str, ...], judged: int) -> None:
    class Growing(Reference):
        def describe(self) -> dict[str, Any]:
            return {**super().describe(), "chapters": {"growing": "storage"}}

    under_test, each = LocalAdapter(Growing()), st.sampled_from([*map(from_sentence, words)])
    with under_test.judging("growing/explore/some") as tally:
        under_test.explore(lambda: each, "growing", 9)
    assert tally.coverage["explore growing"].traces == judged
