"""How long the sentences of the chapters are, and how many are two in one: `python -m tools.sentences`.

Prose is counted, which is the text of clauses, their reasons, and what stands between them. Tables, examples,
headings and the labels of paragraphs are not. `python -m tools.sentences CHAPTER` shows those of a chapter that are
long, or that a colon or a semicolon joins.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import chain

from tabulate import tabulate

from kvspec.chapters import CHAPTERS, GENERAL
from kvspec.reading.clauses import chapter_text

LONG = 28
"""More words than this make a sentence long."""

_LABEL = re.compile(
    r'^(?:<a id="[^"]+"></a>\s*)*(?:\*\*[A-Z]+-\d+\*\* \([^)]*\)\.|\*\*[^*]+\.\*\*|\*[A-Z]\w+:\*|[-\d]+\.? )?\s*'
)
"""What a paragraph may begin with: anchors, a clause's id and marks, a label, or the sign of a list."""


def sentences(text: str) -> Iterator[str]:
    """Give the sentences of a page of Markdown, with a word for what is code or a link."""
    for paragraph in re.split(r"\n\s*\n|\n(?=- |\d+\. )", text.partition("\n## Withdrawn")[0]):
        if not paragraph.startswith(("|", "#", "Example ", "    ")):
            prose = re.sub(r"`[^`]*`", "code", _LABEL.sub("", paragraph))
            words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(prose.split()))
            yield from filter(None, re.split(r"(?<=[.?!])\s+", words))


def long(sentence: str) -> bool:
    """Tell whether a sentence has too many words to be read at once."""
    return len(sentence.split()) > LONG


def joined(sentence: str) -> bool:
    """Tell whether a colon or a semicolon joins two sentences in one. A colon at the end only opens a list."""
    return re.search(r"[:;] ", sentence) is not None


def mean(found: list[str]) -> float:
    """Give the mean number of words."""
    return sum(len(sentence.split()) for sentence in found) / len(found)


def share(found: list[str]) -> float:
    """Give the part of the sentences that a colon or a semicolon joins."""
    return sum(map(joined, found)) / len(found)


def table() -> Iterator[tuple[str, int, str, str, int]]:
    """Give a row for each chapter, and one for all."""
    pages = {name: list(sentences(chapter_text(name))) for name in (GENERAL, *CHAPTERS)}
    for name, found in [*pages.items(), ("all", list(chain(*pages.values())))]:
        yield name, len(found), f"{mean(found):.1f}", f"{share(found):.0%}", sum(map(long, found))


if __name__ == "__main__":
    for chapter in sys.argv[1:]:
        print(*(s for s in sentences(chapter_text(chapter)) if long(s) or joined(s)), sep="\n")
    if not sys.argv[1:]:
        print(tabulate(list(table()), ["chapter", "sentences", "words, mean", "with : or ;", "long"]))
