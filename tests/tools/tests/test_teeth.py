"""The tool that breaks rules of schedulers: its rows, its page, and that a rule which is not found is an error."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.serving.rules import LIVES, first_broken
from kvconform.steps.shorten import OF_ALL
from tools import teeth
from tools.lives import ENGINES

PATCHES = Path(__file__).parents[2] / "adapters" / "serving"
CELLS = re.compile(r"^\| (.*) \| ([a-z0-9 ,]+) \| (\d+) \| (STEP-\d+) \| (\d+|-) \|$")


def broken_rules(engine: str) -> list[str]:
    """The rules that are broken of an engine, in words, in their order; read, since the engine is not here."""
    tree = ast.parse((PATCHES / f"patched_{engine}.py").read_text(encoding="utf-8"))
    words = {node.name: ast.get_docstring(node) or "" for node in tree.body if isinstance(node, ast.FunctionDef)}
    (table,) = (n.value for n in tree.body if isinstance(n, ast.AnnAssign) and ast.unparse(n.target) == "RULES")
    assert isinstance(table, ast.Dict)
    return [" ".join(words[key.id].split()).removesuffix(".") for key in table.keys if isinstance(key, ast.Name)]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_page_has_each_rule_and_each_is_found(engine: str) -> None:
    _, _, part = teeth.PAGE.read_text(encoding="utf-8").partition(f"## {engine}\n")
    lines = [line for line in part.partition("\n## ")[0].splitlines() if line.startswith("| ")][1:]
    found = [match.groups() for match in map(CELLS.match, lines) if match]
    assert [words for words, *_ in found] == broken_rules(engine) and len(found) >= 20
    assert all(1 <= int(lives) <= LIVES for _, _, lives, *_ in found)
    assert all((events == "-") <= (clause in OF_ALL) for *_, clause, events in found)
    assert all(int(events) <= teeth.WANTED for *_, events in found if events != "-")


def a_rule(patch: Any) -> None:
    """A page is
    lost."""


def verdict(clause: str) -> Any:
    """A verdict of three events."""
    return SimpleNamespace(broken=SimpleNamespace(clause=clause), shortest=(1, 2, 3))


def test_a_row_says_whether_a_clause_of_the_rule_was_broken() -> None:
    right = teeth.row(a_rule, "full", ("STEP-30",), 4, verdict("STEP-30"))
    assert right.cells() == "| A page is lost | full | 4 | STEP-30 | 3 |" and right.right
    assert not teeth.row(a_rule, "full", ("STEP-30",), 4, verdict("STEP-8")).right
    missed = teeth.row(a_rule, "full", ("STEP-30",), 0, None)
    assert missed.cells() == "| A page is lost | full | not found |  |  |" and not missed.right


def test_a_part_takes_the_place_of_its_old_one() -> None:
    page = "# Rules\n\nWords.\n\n## sglang\n\nold\n\n## vllm\n\nkept\n"
    made = teeth.with_section(page, "sglang", "## sglang\n\nnew\n")
    assert made == "# Rules\n\nWords.\n\n## sglang\n\nnew\n\n## vllm\n\nkept\n"
    assert teeth.with_section("# Rules\n", "vllm", "## vllm\n\nnew\n") == "# Rules\n\n## vllm\n\nnew\n"


@pytest.mark.parametrize(("clause", "status"), [("STEP-30", 0), ("STEP-8", 1), ("", 1)])
def test_a_rule_that_is_not_found_is_an_error(
    clause: str, status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = teeth.row(a_rule, "full", ("STEP-30",), 1, verdict(clause) if clause else None)
    monkeypatch.setattr(teeth, "tried", lambda engine, log: [made])
    monkeypatch.setattr(teeth, "PAGE", tmp_path / "RULES.md")
    teeth.PAGE.write_text("# Rules\n", encoding="utf-8")
    assert teeth.main(["vllm", "--write"]) == status
    assert made.cells() in teeth.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("at", [0, 3, None])
def test_lives_go_on_until_one_is_broken(at: int | None, tmp_path: Path) -> None:
    lived = Counter[int]()

    def life(seed: int, *_: Any, **__: Any) -> Any:
        lived[seed] += 1
        return SimpleNamespace(judged=lambda log, steps: SimpleNamespace(broken=seed == at))

    lives, found = first_broken(life, tmp_path / "steps.jsonl", "full")
    assert (lives, bool(found)) == ((at or 0) + (at is not None), at is not None)
    assert sum(lived.values()) == (LIVES if at is None else at + 1)
