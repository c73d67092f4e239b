"""mlx-lm's store of caches of prompts in random lives: it is right where nothing is known, each rule that a patch
breaks is found, and so is the fault that is known.

Run by `nox -s lives-mlx-lm`; elsewhere mlx-lm is not there, and these tests are skipped."""

from __future__ import annotations

import re
from importlib.util import find_spec

import pytest

if find_spec("mlx_lm") is None:
    pytest.skip("mlx-lm is not installed", allow_module_level=True)

from adapters.serving.patched_mlx_prompts import RULES
from adapters.serving.rules import LIVES, Rule
from adapters.serving.simulated_mlx_prompts import SHAPES, lives

pytestmark = pytest.mark.filterwarnings("default")

RIGHT = [shape for shape in SHAPES if "chunk" not in shape]


@pytest.mark.parametrize("shape", RIGHT)
def test_it_is_right_where_no_fault_is_known(shape: str) -> None:
    seen = lives(shape).counted(8)
    assert seen["hits"] > 10 and seen["reused"] > 50, seen


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_broken_rule_is_found(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    shape, what = RULES[rule]
    rule(monkeypatch)
    demand(shape, what)


def test_chunks_that_are_cut_beyond_their_rows_are_found() -> None:
    """The fault is known: https://github.com/ml-explore/mlx-lm/issues/1494."""
    demand("full,chunk", "is missing|is no row|its offset")


def demand(shape: str, what: str) -> None:
    """Fail unless one of the lives goes wrong, and so, with a short history."""
    life, wrong, events = lives(shape).first_wrong(LIVES)
    print(life, wrong, *events, sep="\n")
    assert re.search(what, wrong), wrong
    assert len(events) <= 8
