"""What chapters say in words: of other engines, of exceptions, of what they leave out; and the examples of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kvadapters.reference import Reference
from kvconform.judge.trial import run
from kvconform.oracle.reference import CitingReference
from kvconform.runner.under_test import AdapterUnderTest
from kvspec.contract import CHAPTERS, description
from kvspec.reading.clauses import chapter_text, index
from kvspec.reading.examples import Example
from kvspec.registry import CACHES, has
from support.engines import unwritten_engines
from support.running.judging import Wired

REFERENCE = description(Reference().describe())


def of_other_engines(chapter: str) -> str:
    return chapter_text(chapter).partition("## In other engines")[2]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_chapter_says_what_other_engines_do(chapter: str) -> None:
    assert len(of_other_engines(chapter).split()) > 40


STRICTER = ("attention", "rope", "store", "batch", "bucket", "mem", "residency")


@pytest.mark.parametrize("chapter", STRICTER)
def test_a_chapter_that_asks_for_more_than_engines_do_says_where(chapter: str) -> None:
    rows = [line for line in of_other_engines(chapter).splitlines() if re.match(r"\| .*[A-Z]+-\d+", line)]
    assert "asks for more than engines commonly" in of_other_engines(chapter) and len(rows) >= 3


LEFT_OUT = {
    "three bindings over one host cache": ("bucket", "`causal`, `decode_mtp` and `mtp`"),
    "the installing of a prefix": ("bucket", "install only a prefix"),
    "a raw peek": ("store", "reads raw elements of a buffer"),
    "an unknown amount of free memory": ("mem", "does not say how much is free"),
    "arrays of pointers": ("mem", "arrays of pointers to them are not"),
}


@pytest.mark.parametrize(("chapter", "words"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_what_a_chapter_leaves_out_of_its_source_is_said(chapter: str, words: str) -> None:
    assert words in " ".join(chapter_text(chapter).split())


@pytest.mark.parametrize("kind", [kind for kind in CACHES if not has(kind, "snapshot", "attend")] + ["ragged"])
def test_a_cache_without_snapshots_and_attends_says_that_they_are_not_covered(kind: str) -> None:
    _, _, left_out = chapter_text(kind).partition("**Not covered.** Snapshots")
    assert "ATTN" in left_out.partition("\n\n")[0]


EXCEPTIONS = {"CACHE-9": "DRAFT-13", "BATCH-21": "BATCH-5"}


def exercised(example: Example) -> set[str]:
    return set(run(example.trace, CitingReference(), REFERENCE).exercised())


@pytest.mark.parametrize(("clause", "exception"), EXCEPTIONS.items())
def test_a_clause_names_its_exception_and_an_example_shows_it(clause: str, exception: str) -> None:
    found = index()[clause]
    assert exception in found.text + found.reason
    assert any({clause, exception} <= exercised(example) for example in found.examples)


def ending(example: Example) -> tuple[list[str], dict[str, Any]]:
    return sorted(map(str, example.trace.ops)), dict(example.rows[-1].said)


def test_the_width_of_a_mask_is_defined_at_level_visible() -> None:
    assert "At level visible K is the number of rows that the cache hands out" in " ".join(
        chapter_text("mask").split()
    )


def test_both_orders_of_a_law_on_orders_are_shown() -> None:
    first, other, truncated, dropped = index()["PAGE-46"].examples
    assert first.trace.ops != other.trace.ops and ending(first) == ending(other)
    assert ending(truncated)[0] == ending(dropped)[0] and truncated.trace.ops != dropped.trace.ops
    sequence = "sequence 0"
    assert ending(truncated)[1][sequence] == ending(dropped)[1][sequence]


def test_the_start_of_a_rings_snapshot_is_defined_and_is_not_the_row_in_slot_0() -> None:
    snap = index()["SNAP-15"]
    assert "its start is its stop less the number of its rows" in " ".join(snap.text.split())
    slots = [
        (row.said["snapshot"], row.said["slots"]) for e in snap.examples for row in e.rows if "snapshot" in row.said
    ]
    wrapped = [(made, rows) for ((made, *_), rows) in slots if rows[0] != min(rows)]
    assert wrapped and all(made == (min(rows), min(rows) + len(rows)) for made, rows in wrapped)


def test_a_commit_of_no_draft_on_what_was_never_written_is_shown() -> None:
    draft = index()["DRAFT-21"]
    never = [
        row.said for e in draft.examples for op, row in zip(e.trace.ops, e.rows, strict=True) if op.get("n") == 0
    ]
    assert "never written" in draft.text and {"A slots": None, "B slots": None} in never


def test_one_clause_holds_a_second_turn_against_exact_numbers_and_the_law_two_ways_against_each_other() -> None:
    step, law = index()["ROPE-14"], index()["ROPE-25"]
    assert "exact numbers" in step.text and not step.law
    assert "by either way" in law.text and law.law and "exact" not in law.text


def test_a_cache_that_is_empty_after_a_commit_of_no_draft_and_was_never_written_is_caught() -> None:
    worker: Any = Wired(f"{unwritten_engines.__name__}:EmptyAfterCommit")
    under_test = AdapterUnderTest(worker, worker.describe())
    failed = [e.id for e in index()["DRAFT-21"].examples if under_test.run(e.trace).differences]
    assert failed == ["DRAFT-21.3"]


def test_the_glossary_is_in_alphabetical_order() -> None:
    table = (Path(__file__).parents[2] / "spec/GLOSSARY.md").read_text(encoding="utf-8").partition("\n## ")[0]
    words = [line.split("|")[1].strip().casefold() for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(words) > 80 and words == sorted(set(words))


def test_each_word_of_the_glossary_leads_to_a_page() -> None:
    table = (Path(__file__).parents[2] / "spec/GLOSSARY.md").read_text(encoding="utf-8").partition("\n## ")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| ")][1:]
    assert [word for word, meaning in rows if not re.search(r"\(\[[^]]+\]\([^)]+\.md[^)]*\)\) $", meaning)] == []
