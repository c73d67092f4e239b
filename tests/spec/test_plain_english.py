"""The chapters are written for engineers whose second language English is: short sentences, one thought in each."""

from __future__ import annotations

from itertools import chain

import pytest

from kvspec.chapters import CHAPTERS, GENERAL
from kvspec.reading.clauses import chapter_text
from tools.sentences import joined, long, mean, sentences, share

PROSE = {chapter: list(sentences(chapter_text(chapter))) for chapter in (GENERAL, *CHAPTERS)}


def test_the_mean_sentence_of_all_chapters_is_short() -> None:
    assert mean(list(chain(*PROSE.values()))) <= 14.5


@pytest.mark.parametrize("chapter", PROSE)
def test_the_sentences_of_a_chapter_are_short(chapter: str) -> None:
    found = PROSE[chapter]
    assert mean(found) <= 16
    assert sum(map(long, found)) <= 0.05 * len(found)


@pytest.mark.parametrize("chapter", PROSE)
def test_few_sentences_of_a_chapter_are_two_in_one(chapter: str) -> None:
    assert share(PROSE[chapter]) <= 0.08


def test_what_is_counted_is_prose() -> None:
    page = """\
# RING: a title

<a id="RING-1"></a>
**RING-1** (visible; seen in history). A query sees `a: b; c` and
[its own row](https://example.org/a;b). It sees no other; none is left.

*Why:* engines differ in this.

Example RING-1.1, ring window=3

| do; | offset |
|---|---|

- One item.
- Another: the last.

## Withdrawn

- RING-9: gone.
"""
    found = list(sentences(page))
    assert found == [
        *("A query sees code and its own row.", "It sees no other; none is left.", "engines differ in this."),
        *("One item.", "Another: the last."),
    ]
    assert [joined(sentence) for sentence in found] == [False, True, False, False, True]
    assert mean(found) == 24 / 5 and share(found) == 2 / 5


def test_a_sentence_of_more_than_28_words_is_long() -> None:
    assert not long("word " * 28) and long("word " * 29)
