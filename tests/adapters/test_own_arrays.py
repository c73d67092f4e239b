"""Who owns arrays is judged on the engine's own arrays, both ways, though numpy is copied into and out of them."""

from __future__ import annotations

from typing import Any

import pytest

from kvconform.runner.verdict.observation import answered_by_adapter
from kvspec.notation import from_sentence
from kvspec.reading.clauses import index
from support.engines import array_engines
from support.running.local_adapter import LocalAdapter

OVERWRITTEN, HELD = "growing: append 2; scribble; append 1", "growing: append 2; append 1; scribble"


def differences(adapter: Any, words: str) -> list[str]:
    return [d.message for d in LocalAdapter(adapter).run(from_sentence(words)).differences]


@pytest.mark.parametrize("words", [OVERWRITTEN, HELD])
@pytest.mark.parametrize("adapter", [array_engines.right, array_engines.frozen], ids=lambda a: a.name)
def test_an_engine_that_shares_no_array_or_none_that_changes_conforms(adapter: Any, words: str) -> None:
    assert differences(adapter, words) == []


@pytest.mark.parametrize(
    ("adapter", "words", "message"),
    [
        (array_engines.keeps_what_it_is_handed, OVERWRITTEN, "should hold a once"),
        (array_engines.hands_out_its_own, OVERWRITTEN, "should hold a once"),
        (array_engines.reuses_what_it_handed_out, HELD, "intact: expected True, found False"),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_an_engine_that_shares_its_arrays_is_found(adapter: Any, words: str, message: str) -> None:
    (difference,) = differences(adapter, words)
    assert message in difference


def test_who_converts_arrays_by_itself_says_that_it_answers_for_the_engine() -> None:
    said = [LocalAdapter(a).adapter for a in (array_engines.right, array_engines.answers_intact)]
    assert [answered_by_adapter(index()["CACHE-4"], about) for about in said] == [False, True]
    assert not answered_by_adapter(index()["GROW-1"], said[1])
