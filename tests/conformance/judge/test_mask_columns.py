"""Masks are fitted to an adapter's own history; a width that is wrong stays so, without any queries too."""

from __future__ import annotations

from typing import Any

import pytest

from kvconform.runner.under_test import AdapterUnderTest
from kvspec.notation import from_sentence
from support.engines import width_engines
from support.running.judging import Wired


def differences(name: str, sentence: str) -> list[str]:
    worker: Any = Wired(f"{width_engines.__name__}:{name}")
    under_test = AdapterUnderTest(worker, worker.describe())
    return [d.message for d in under_test.run(from_sentence(sentence)).differences]


CORRECT = {
    "a right width, of a history that is empty": "growing: append 3; append 0; mask bool[1,1,0,3]",
    "a wrong one": "growing: append 3; append 0; mask bool[1,1,0,4]",
    "of a cache that was never written": "growing: append 0; mask bool[1,1,0,0]; mask bool[1,1,0,2]",
    "a right width, of a history that is cut": "ring window=3: append 5; append 0; mask bool[1,1,0,5]",
    "a wrong one that would be 1": "ring window=3: append 5; append 0; mask bool[1,1,0,3]",
    "a single column": "ring window=3: append 5; append 0; mask f32[1,1,0,1]",
    "after a rewind": "growing: append 3; rewind 1; append 0; mask bool[1,1,0,1]; append 1; mask 10; mask 100",
}


@pytest.mark.parametrize("sentence", CORRECT.values(), ids=CORRECT)
def test_a_correct_cache_passes_whatever_its_width(sentence: str) -> None:
    assert differences("Widths", sentence) == []


def test_a_width_that_is_wrong_is_judged_where_rows_are_handed_out() -> None:
    (found,) = differences("OneColumnTooWide", "ring window=3: append 5; append 0; mask bool[1,1,0,6]")
    assert "expected refused" in found
