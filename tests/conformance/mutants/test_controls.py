"""Controls: caches that are right and stored otherwise are left alone; what must be found is, and by its clause."""

from __future__ import annotations

from typing import Any

import pytest

from kvconform.checks import examples
from kvconform.mutants import controls, correct_variants
from kvconform.mutants.correct_variants import Linked
from kvspec import notation
from kvspec.geometry import Config
from kvspec.reading.clauses import index
from support.local_adapter import LocalAdapter

EVERY = 4
"""One worked example in so many: the hunt of `kvconform mutants --kind controls` takes them all."""


def judged(adapter: Any, chapters: tuple[str, ...], every: int = 1) -> LocalAdapter:
    """The adapter under test after worked examples of some chapters."""
    under_test = LocalAdapter(adapter)
    worked = [e for c in index().values() if c.chapter in chapters and c.level == "visible" for e in c.examples]
    with under_test.judging("examples"):
        for example in worked[::every]:
            examples.judge(under_test, example)
    return under_test


@pytest.mark.parametrize("variant", correct_variants.VARIANTS)
def test_who_is_right_and_stores_otherwise_is_left_alone(variant: type[Any]) -> None:
    under_test = judged(variant(), correct_variants.VARIANTS[variant], EVERY)
    assert not under_test.tally.failures and not under_test.tally.own
    assert under_test.tally.exercised


@pytest.mark.parametrize("wrong", controls.WRONG)
def test_who_must_be_found_is_found_by_its_clause(wrong: type[Any]) -> None:
    clauses = controls.WRONG[wrong]
    under_test = judged(wrong(), tuple(index()[c].chapter for c in clauses))
    assert set(clauses) <= {c for f in under_test.tally.failures for c in f.clauses}


def test_the_variants_do_store_otherwise() -> None:
    """Chunks are as many as appends; heads lie side by side over all layers; pages come from the top."""
    linked = Linked().open("growing", Config())
    heads: Any = correct_variants.HeadMajor().open("store", Config(layers=3, max_len=2))
    assert heads.keys[0].base is heads.keys[2].base
    assert isinstance(linked.rows, correct_variants.Chunks)  # type: ignore[attr-defined]
    trace = notation.trace("page", "pages=4 page_size=1", "admit; append 1")
    seen = LocalAdapter(correct_variants.FromTheTop()).run(trace)
    assert not seen.failed and seen.steps[-1][1].values["table.0"] == [3]


def test_every_control_says_whether_it_must_live() -> None:
    lives = {m.id: m.is_control for m in controls.mutants()}
    assert {f"control/{v.__name__}" for v in correct_variants.VARIANTS} <= {i for i, live in lives.items() if live}
    assert {f"control/{v.__name__}" for v in controls.WRONG} == {i for i, live in lives.items() if not live}
