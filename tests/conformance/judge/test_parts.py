"""A correct cache that claims few chapters: none of its clauses fails, and none is left unexercised."""

from __future__ import annotations

import pytest

from kvspec.records.run import Record
from kvspec.registry import KINDS
from support.fakes import parts_of_reference
from support.running import judging
from support.running.judging import broken, clause, verdicts
from support.slow import one_in


def conforms(part: str) -> Record:
    """The record of a part of the reference: nothing in it is wrong, but what the part does and does not claim."""
    seen = judging.record_of(f"{parts_of_reference.__name__}:{part}", traces=3)
    assert (broken(seen), [f.words for f in seen.failures]) == (set(), [])
    assert [p for p in seen.problems if p.startswith("harness: ")] == []
    assert "NOT_RUN" not in verdicts(seen).values()
    return seen


@pytest.mark.parametrize("level", ["visible", "storage"])
@pytest.mark.parametrize("kind", one_in(5, KINDS))
def test_a_cache_that_claims_one_kind_alone_conforms(kind: str, level: str) -> None:
    conforms(f"{kind}_{level}")


def test_storage_is_not_claimed_where_masks_are_claimed_at_level_visible() -> None:
    seen = conforms("ring_storage_mask_visible")
    assert clause(seen, "RING-19").verdict == "NOT_CLAIMED" and clause(seen, "RING-1").verdict == "PASS"
    assert clause(seen, "RING-19").reason == "what shows it takes mask, which the adapter claims at level visible"


def test_pages_at_level_storage_are_judged_so_whatever_masks_are_claimed() -> None:
    seen = conforms("page_storage_growing_mask_visible")
    stored = [c for c in seen.clauses if c.chapter == "page" and c.level == "storage"]
    assert {c.id for c in stored if c.verdict != "PASS"} == {"PAGE-39"}, "it is about plans, which are not claimed"


@pytest.mark.parametrize("part", ["growing_storage_mask-causal_visible", "ragged-sees_visible"])
def test_what_queries_see_is_not_read_where_nobody_says_it(part: str) -> None:
    conforms(part)


def test_what_takes_another_chapter_is_not_claimed_and_says_which() -> None:
    reason = clause(conforms("growing_attention_storage"), "ATTN-35").reason
    assert reason == "what shows it takes batch, store, which the adapter does not declare"


@pytest.mark.parametrize(("part", "shown"), [("ring_rope_visible", "ROPE-1"), ("bounded_mask_visible", "MASK-7")])
def test_examples_of_a_shared_chapter_are_judged_on_the_kind_that_is_claimed(part: str, shown: str) -> None:
    assert clause(conforms(part), shown).verdict in ("PASS", "PARTLY_OBSERVED")
