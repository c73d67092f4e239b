"""What a fault needs, and random requests seldom bring together, histories aim at: each of these is found by those
of one clause, and the right engine is not accused by them."""

from __future__ import annotations

import pytest

from hostile.engine_faults import CONTROLS, FAULTS, Variant
from hostile.engine_faults.judged import Sure, written
from kvadapters.probe import Precision
from kvconform.serving.recipes import RECIPES
from kvspec.serving.history import history
from support.engines import serving

RARE = {
    "batch/preempted-sample": "SERVE-10",
    "hybrid/hit-asks-one-group": "SERVE-9",
    "prefix/where-a-chunk-ends": "SERVE-13",
    "speculation/drafts-are-cached": "SERVE-16",
    "speculation/stop-among-drafts": "SERVE-18",
}


def wrong(variant: Variant, clause: str) -> list[str]:
    """Play all histories that aim at a clause, each on an engine that has done nothing; give the wrong ones."""
    probe, folder = written()
    recipe, _ = RECIPES[clause]
    with variant.planted():
        run = Sure(probe, serving.driver(folder, **variant.settings), Precision())
        return [words for words in recipe(run.aim) if run._wrong_in(history(words))]


@pytest.mark.must("found by a history that aims at its clause, and none accused without it")
@pytest.mark.parametrize("fault", RARE)
def test_a_rare_fault_is_aimed_at(fault: str) -> None:
    assert wrong(FAULTS[fault], RARE[fault])
    assert not wrong(CONTROLS["controls/as-it-is"], RARE[fault])
