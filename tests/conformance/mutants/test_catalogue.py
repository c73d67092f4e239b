"""The catalogue of real bugs: all of it is planted or said not to be, and what is planted is found.

The hunt for all of them is `nox -s mutants`; here is one of each chapter.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from kvadapters.reference import Reference
from kvconform.bugs import known_bugs
from kvconform.bugs.catalogue import CLASSES, NOT_PLANTED
from kvconform.bugs.mutant import Mutant
from kvconform.bugs.trace_sources import examples, explored
from kvconform.generate.amounts import TRACES
from kvspec.contract import CHAPTERS
from kvspec.notation import sentence
from kvspec.reading.clauses import index
from kvworkshop.hunt import hunt
from support.running.local_adapter import LocalAdapter
from support.slow import one_in

ALL = list(known_bugs.real())

ENTRIES = 150
"""Entries of the catalogue, at least: none is lost."""
LONGEST = 8
"""Operations that show a bug, at most."""
SOME = 5
"""Explored traces of a chapter that the sound reference is judged by here."""

ONE_OF_EACH = {m.chapters[0]: m for m in reversed(ALL)}
"""The first of each chapter."""


def entry(m: Mutant) -> str:
    return m.id.partition("/")[0]


def test_every_entry_is_planted_or_said_not_to_be() -> None:
    planted = {entry(m) for m in ALL}
    assert planted & set(NOT_PLANTED) == set()
    assert len(planted | set(NOT_PLANTED)) >= ENTRIES
    assert all(why.strip() for why in NOT_PLANTED.values())


def test_ids_are_unique_and_an_entry_was_seen_in_one_place() -> None:
    assert [i for i, n in Counter(m.id for m in ALL).items() if n > 1] == []
    places = {(entry(m), m.link) for m in ALL}
    assert [e for e, n in Counter(e for e, _ in places).items() if n > 1] == []


def test_every_entry_is_of_a_class_that_is_explained() -> None:
    assert {m.bug_class for m in ALL} == set(CLASSES)
    assert {e.partition("-")[0] for e in NOT_PLANTED} <= set(CLASSES)
    assert all(of.name and of.says for of in CLASSES.values())


@pytest.mark.parametrize("mutant", ALL, ids=lambda m: m.id)
def test_a_bug_says_what_it_does_and_a_clause_that_it_breaks_links_to_it(mutant: Mutant) -> None:
    assert mutant.says.endswith(".") and mutant.id.startswith(mutant.bug_class)
    assert any(mutant.link in index()[c].reason for c in mutant.clauses)


def test_each_chapter_has_bugs() -> None:
    assert set(ONE_OF_EACH) == set(CHAPTERS)


@pytest.mark.parametrize("mutant", one_in(24, ONE_OF_EACH.values()), ids=lambda m: m.id)
def test_a_bug_is_found_on_a_short_trace_and_blamed_on_a_clause_that_it_breaks(mutant: Mutant) -> None:
    found = hunt(mutant)
    assert found.killed and found.right and found.operations <= LONGEST


@pytest.mark.parametrize("chapter", one_in(6, CHAPTERS))
def test_the_sound_reference_passes_all(chapter: str) -> None:
    """What finds a bug is the bug: on the reference itself the same traces differ nowhere."""
    under_test = LocalAdapter(Reference())
    few = islice(explored(chapter), 0, None, TRACES // SOME)
    for item in (*examples(chapter), *few):
        assert not under_test.run(item.trace).failed, sentence(item.trace)
