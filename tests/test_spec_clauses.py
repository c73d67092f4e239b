"""The chapters: read strictly, every clause held by an oracle, every example true and telling."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from kvadapters.reference import Reference
from kvconform import examples, laws, trial
from kvconform.replay import BITS, OWNERSHIP, Cited
from kvspec import clauses
from kvspec.clauses import CHAPTERS, index
from kvspec.contract import description
from kvspec.errors import BadInput
from kvspec.examples import Example, Row

HOUSE = Path(__file__).parents[1]
REFERENCE = description(Reference().describe())
ID = re.compile(r"^(?:GROW|RING|MASK|SNAP)-\d+$")

CHAPTER = """# RING: a chapter

**RING-1** (visible; seen in history). A rule that
goes over two lines.

*Why:* because of [this](https://example.org/a).

Example RING-1.1, ring window=3

| do | offset |
|---|---|
| append 2 | 2 |
"""


def named(*folders: str) -> set[str]:
    """Clause ids that stand as texts in the code of some folders."""
    found = set()
    for file in (f for folder in folders for f in (HOUSE / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= {word for word in node.value.split() if ID.match(word)}
    return found


def test_every_clause_that_code_names_exists() -> None:
    assert named("reference", "adapters", "conformance", "examples") - set(index()) == set()


def test_every_clause_is_enforced_by_the_reference_or_is_a_law() -> None:
    stated = {law.clause for law in laws.LAWS}
    enforced = named("reference") | {*OWNERSHIP.values(), *BITS.values(), "MASK-15"} | stated
    assert set(index()) - enforced == set()
    assert {c.id for c in index().values() if c.law} == stated


def test_ids_are_numbered_without_gaps() -> None:
    for letters, profile in CHAPTERS.items():
        numbers = sorted(c.number for c in index().values() if c.profile == profile)
        assert numbers == list(range(1, len(numbers) + 1)), letters


def test_all_worked_examples_hold_and_exercise_their_clause() -> None:
    assert list(examples.check_all()) == []


def every_example() -> list[Example]:
    return [e for c in index().values() for e in c.examples]


def perturbed(value: Any) -> Any:
    """Another value of the same column."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return 1 << 20
    if value is None:
        return [0]
    if isinstance(value, list) and value and (value[0] is None or isinstance(value[0], tuple)):
        return [(0, 99)] * len(value)
    return [*value, value[-1] if value else 0] if isinstance(value, list) else value


@pytest.mark.parametrize("level", ["storage", "visible"])
def test_every_filled_cell_can_be_wrong(level: str) -> None:
    vacuous = []
    for example in every_example():
        seen = trial.run(example.trace, Cited(), REFERENCE, level)
        for i, row in enumerate(example.rows):
            for column, said in row.said.items():
                if level == "visible" and column in examples.AT_STORAGE:
                    continue
                rows = [*example.rows]
                rows[i] = Row({**row.said, column: perturbed(said)})
                changed = Example(example.id, example.clause, example.trace, tuple(rows))
                if not examples.disagreements(changed, seen, REFERENCE):
                    vacuous.append(f"{example.id} step {i + 1} {column}")
    assert vacuous == []


def test_links_are_https() -> None:
    texts = [clauses.chapter_text(p) for p in CHAPTERS.values()]
    links = [link for text in texts for link in re.findall(r"\]\(([^)]+)\)", text)]
    assert len(links) > 20
    assert [link for link in links if not link.startswith("https://")] == []


def test_a_chapter_is_read() -> None:
    (clause,) = clauses.read("RING", "ring", CHAPTER)
    assert clause.text == "A rule that goes over two lines."
    assert clause.reason == "because of [this](https://example.org/a)."
    assert (clause.level, clause.applies, clause.seen_in, clause.law) == ("visible", ("ring",), ("history",), False)
    assert [e.id for e in clause.examples] == ["RING-1.1"]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("(visible; seen in history)", "(visible, seen in history)"),
        ("(visible; seen in history)", "(sometimes; seen in history)"),
        ("(visible; seen in history)", "(visible; seen in dreams)"),
        ("(visible; seen in history)", "(visible, paged; seen in history)"),
        ("**RING-1**", "**RONG-1**"),
        ("Example RING-1.1", "Example RING-2.1"),
        ("Example RING-1.1", "Exampel RING-1.1"),
        ("Example RING-1.1", "example RING-1.1"),
        ("| append 2 | 2 |", "| append 2 | two |"),
        ("| append 2 | 2 |", "| append 2 |"),
        ("| append 2 | 2 |", "| appendix 2 | 2 |"),
        ("| append 2 | 2 |", "| append 2 3 4 5 6 7 8 9 10 | 2 |"),
        ("| do | offset |", "| do | ofset |"),
        ("window=3", "window=three"),
        ("window=3", "windows=3"),
        ("window=3\n\n|", "window=3\n|"),
    ],
)
def test_what_cannot_be_read_is_an_error(wrong: str, right: str) -> None:
    assert wrong in CHAPTER
    with pytest.raises(BadInput, match=r"ring\.md"):
        clauses.read("RING", "ring", CHAPTER.replace(wrong, right))
