"""How a reader finds a page: four doors, the contents of a page, and what a search engine shows of it."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import NamedTuple

DESCRIPTION = 160
"""The most characters of a description: search engines cut longer ones."""

_PLACE = re.compile(
    r'<h(?P<level>[23])\b[^>]* id="(?P<id>[^"]+)"[^>]*>(?P<words>.*?)</h(?P=level)>'
    r'|<section class="clause" id="(?P<clause>[^"]+)">',
    re.S,
)


class Door(NamedTuple):
    """What a reader comes for: a verb, what it leads to, and the pages behind it with the words of their links."""

    name: str
    says: str
    pages: Mapping[str, str]


class Place(NamedTuple):
    """A heading or a clause of a page: how deep it lies (2 or 3), its anchor and its words."""

    level: int
    anchor: str
    words: str


DOORS = (
    Door(
        "Judge",
        "a cache, a whole engine, or the log of a scheduler",
        {
            "tutorial": "Tutorial",
            "engine": "A released engine",
            "serving": "A serving engine",
            "steps": "A log of steps",
            "probe": "An engine's attention",
            "wire": "Any language",
            "commands": "Commands",
        },
    ),
    Door(
        "Learn",
        "what these caches must do, and how they go wrong",
        {
            "guide": "Reading guide",
            "examples": "Notation",
            "differences": "Where engines differ",
            "bugs": "Bugs, drawn",
            "anomalies": "Anomalies",
        },
    ),
    Door(
        "Look up",
        "a clause by its id, a word, a trace",
        {
            "chapters": "Chapters",
            "glossary": "Glossary",
            "words": "Index of words",
            "search": "Search",
            "player": "Player",
        },
    ),
    Door(
        "Believe",
        "what was judged, and why a verdict can be trusted",
        {"board": "Board", "versions": "Over time", "how-it-works": "How it works", "prove": "Proofs"},
    ),
)


def contents(body: str) -> list[Place]:
    """The headings and clauses of a page that have an anchor, in order."""
    return [
        Place(3, m["clause"], m["clause"]) if m["clause"] else Place(int(m["level"]), m["id"], bare(m["words"]))
        for m in _PLACE.finditer(body)
    ]


def description(body: str, title: str) -> str:
    """The first paragraph of a page, in at most 160 characters; the title of a page that has none."""
    first = re.search(r"<p\b(?! class=\"note\")[^>]*>(.*?)</p>", body, re.S)
    text = bare(first[1]) if first else title
    return text if len(text) <= DESCRIPTION else text[: DESCRIPTION - 1].rpartition(" ")[0] + "…"


def bare(markup: str) -> str:
    """The words of a piece of HTML, in one line."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", markup)).split())
