"""A correct cache that claims few chapters: none of its clauses fails, and none is left unexercised."""

from __future__ import annotations

import pytest

from kvspec.registry import KINDS
from support import judging, parts_of_reference
from support.judging import broken, verdicts


@pytest.mark.parametrize("level", ["visible", "storage"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_cache_that_claims_one_kind_alone_conforms(kind: str, level: str) -> None:
    seen = judging.record_of(f"{parts_of_reference.__name__}:{kind}_{level}", traces=3)
    assert (broken(seen), [f.words for f in seen.failures]) == (set(), [])
    assert [p for p in seen.problems if p.startswith("harness: ")] == []
    assert "NOT_RUN" not in verdicts(seen).values()
