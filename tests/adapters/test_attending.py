"""`attending`: a sound engine is judged right, and faults behind it are found."""

from __future__ import annotations

import pytest

from kvadapters.attending import scores
from kvspec.masks import CAUSAL, Explicit, Window
from kvspec.notation import from_sentence
from support.engines import attending_engines
from support.running.local_adapter import LocalAdapter

TURNED = "growing k_dim=4 dtype=f32: append 2; attend 2 rope=neox; attend 1 rope=norm scaling=linear:4"


@pytest.mark.parametrize("trace", ["growing k_dim=4 dtype=f32: append 2; attend 2; attend 1", TURNED])
def test_a_sound_engine_is_judged_right(trace: str) -> None:
    assert not LocalAdapter(attending_engines.right).run(from_sentence(trace)).failed


def test_what_a_query_must_not_see_is_found() -> None:
    trace = from_sentence("growing k_dim=4 dtype=f32: append 2; attend 2")
    assert LocalAdapter(attending_engines.sees_the_future).run(trace).failed


def test_rows_that_are_turned_from_elsewhere_are_found() -> None:
    trace = from_sentence("growing k_dim=4 dtype=f32: append 2; rotate 2 3")
    assert LocalAdapter(attending_engines.turns_from_zero).run(trace).failed


def test_it_claims_attention_and_rope_beside_the_kind() -> None:
    said = attending_engines.right.describe()["chapters"]
    assert said["attention"]["with"] == ["attend"] and said["rope"]["with"] == ["rotate", "linear"]


def test_parts_of_a_mask_are_added_up() -> None:
    own = Explicit(scores(CAUSAL, 1, 3) + 2)
    assert scores((*CAUSAL, Window(2), own), 1, 3).tolist() == [[[[float("-inf"), 2.0, 2.0]]]]
