"""The page of what adapters leave out: each choice has a reason, and it is what smoke finds of these adapters."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from kvadapters import find
from kvadapters.find import ENGINES
from tools import left_out

ROWS = json.loads(left_out.FOUND.read_text(encoding="utf-8"))
MODULES = {"mlx": "mlx_lm", "mlxvlm": "mlx_vlm", "llama": "llama_cpp"}
"""What an engine is imported as, where that is not the first word of its adapters."""


def test_the_page_is_what_was_found() -> None:
    assert left_out.page(ROWS) == left_out.PAGE.read_text(encoding="utf-8"), "run python -m tools.left_out none"


def test_each_choice_has_a_reason() -> None:
    assert left_out.without_reason(ROWS) == []


def test_no_reason_is_left_of_what_nobody_leaves_out() -> None:
    out = {(name, ability) for name, row in ROWS.items() for sort in ("right", "wrong") for ability in row[sort]}
    for who, said in left_out.reasons().items():
        for ability in said:
            assert any(who in (name, name.partition("-")[0], "all") and of == ability for name, of in out), (
                f"{who} does not leave out {ability}"
            )


def test_no_adapter_is_missing_but_those_that_say_why() -> None:
    assert set(ENGINES) - set(ROWS) <= set(left_out.NOT_TRIED)


def test_a_choice_without_a_reason_is_told() -> None:
    row = {"version": "1", "right": {"growing.nothing": ""}, "wrong": {}}
    assert left_out.without_reason({"mlx-growing": row}) == ["mlx-growing: growing.nothing"]


@pytest.mark.parametrize("name", [name for name in ENGINES if name in ROWS])
def test_what_smoke_finds_is_what_is_published(name: str) -> None:
    word = name.partition("-")[0]
    if not find_spec(MODULES.get(word, word)):
        pytest.skip(f"{word} is not installed")
    if find.load(name).describe()["version"] != ROWS[name]["version"]:
        pytest.skip(f"another release of {word} is installed")
    row = left_out.tried(name)
    assert row is not None
    assert [set(row[sort]) for sort in ("right", "wrong")] == [set(ROWS[name][sort]) for sort in ("right", "wrong")]


def test_the_reference_leaves_nothing_out() -> None:
    row = left_out.tried("reference")
    assert row is not None and not row["right"] and not row["wrong"]


def test_an_ability_that_is_done_and_not_claimed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])  # the worker finds it in the folder where it runs
    row = left_out.tried("support.engines.dialect_engines:keeps_all")
    assert row is not None and "ring.ask" in row["wrong"] and "differ" not in row["right"]
