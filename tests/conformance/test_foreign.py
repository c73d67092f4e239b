"""Implementations that share nothing with the reference conform; ones that are wrong in one thing do not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kvadapters.find import load
from kvconform.generate.claims.fit_to_adapter import beyond, claimed, cut
from kvspec.contract import CHAPTERS, Description, description
from kvspec.notation import from_sentence, sentence
from kvspec.reading.clauses import index
from support.engines import foreign
from support.engines.foreign import FOREIGN, Foreign, named
from support.engines.foreign.wrong import WRONG
from support.running.judging import broken, record_of
from support.slow import one_in
from tools.foreign import judged

ALL = [pytest.param(each, id=each.adapter) for each in FOREIGN]


def skip_without(package: str) -> None:
    if package:
        pytest.importorskip(package, reason=f"{package} is not installed; `nox -s foreign` installs it")


@pytest.mark.parametrize(
    "implementation", one_in(8, [(each,) for each in FOREIGN]), ids=[f.adapter for f in FOREIGN]
)
def test_a_foreign_implementation_conforms(implementation: Foreign) -> None:
    skip_without(implementation.needs)
    assert judged(implementation, ["--quick"]).startswith("Conforms (")


@pytest.mark.parametrize("implementation", ALL)
def test_it_claims_the_chapters_that_it_is_here_for_and_declares_no_deviation(implementation: Foreign) -> None:
    skip_without(implementation.needs)
    claimed = description(load(implementation.name).describe())
    assert set(implementation.chapters) <= set(claimed.chapters) and not claimed.known


@pytest.mark.parametrize(("adapter", "clauses"), one_in(8, WRONG.items()))
def test_one_that_is_wrong_in_one_thing_does_not(adapter: str, clauses: list[str]) -> None:
    skip_without("torch" if "torch" in adapter else "")
    chapters = tuple(dict.fromkeys(index()[clause].chapter for clause in clauses))
    assert set(clauses) <= broken(record_of(named(adapter), chapters))


def test_no_chapter_is_without_a_foreign_implementation_that_always_runs_and_one_that_is_wrong() -> None:
    assert {chapter for f in FOREIGN if not f.needs for chapter in f.chapters} == set(CHAPTERS)
    assert {index()[clause].chapter for clauses in WRONG.values() for clause in clauses} == set(CHAPTERS)


def test_none_of_them_looks_at_the_reference_or_at_the_caches_of_this_project() -> None:
    for source in Path(foreign.__file__).parent.glob("*.py"):
        assert not re.search(
            r"^\s*(from|import) (kvref|kvadapters|kvconform)\b", source.read_text(encoding="utf-8"), re.M
        )


def claims(attention: list[str], growing: tuple[str, ...] = ("rewind", "bits")) -> Description:
    able: Any = {"growing": {"level": "visible", "with": list(growing)}}
    return description({"name": "x", "chapters": able | {"attention": {"level": "visible", "with": attention}}})


PLAIN = claims(["attend"])
BASIC = [f"ATTN-{n}" for n in (1, 2, 3, 4, 5, 7, 9, 33, 45, 49, 51)]


@pytest.mark.parametrize("clause", BASIC)
def test_what_any_attention_does_is_judged_of_one_that_can_do_nothing_else(clause: str) -> None:
    assert not beyond(index()[clause], claims(["attend"], ()))


@pytest.mark.parametrize(
    ("ability", "clauses"),
    {
        "zero": ["ATTN-12"],
        "sees nothing": ["ATTN-10"],
        "finite": ["ATTN-46", "ATTN-50", "ATTN-52"],
        "checks": ["ATTN-23", "ATTN-24", "ATTN-25", "ATTN-27"],
        "splits": ["ATTN-37", "ATTN-48"],
        "into": ["ATTN-14"],
    }.items(),
)
def test_an_ability_alone_brings_its_clauses(ability: str, clauses: list[str]) -> None:
    for clause in map(index().__getitem__, clauses):
        assert beyond(clause, PLAIN) and not beyond(clause, claims(["attend", ability]))


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("append 2; attend 1 through 000; attend 1 through 1111", "append 2; attend 1 through 111"),
        ("append 2; attend 1 through 11; attend 1 heads=3; attend 1", "append 2; attend 1"),
        ("append 2; attend 1 splits=2; attend 1 into=1; attend 0; attend 1", "append 2; attend 1"),
        ("append 1 fill=bits; rewind 0; attend 1; append 1", "append 1 fill=bits; rewind 0; append 1"),
        ("append 2; attend 1 fill=edges; attend 1", "append 2; attend 1"),
    ],
)
def test_what_an_engine_cannot_do_is_left_out_of_traces(words: str, left: str) -> None:
    """A mask that fits only beside what was left out is left out too."""
    trace = from_sentence(f"growing: {words}")
    kept = claimed(trace, PLAIN)
    assert kept == claimed(kept, PLAIN)
    assert sentence(kept) in (f"growing: {left}", f"growing: {left.removesuffix('; attend 1 through 111')}")
    assert trace.ops[: len(cut(trace, PLAIN).ops)] == cut(trace, PLAIN).ops != trace.ops
