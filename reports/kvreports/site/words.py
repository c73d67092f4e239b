"""The index of words: each noun of the glossary, what it means, and the clauses that use it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kvspec.reading.clauses import Clause

GLOSSARY = "spec/GLOSSARY.md"
_ROW = re.compile(r"^\| (?P<word>[^|]+?) \| (?P<meaning>[^|]+?) \|$", re.M)


@dataclass(frozen=True)
class Word:
    """A word of the glossary. The meaning is small Markdown."""

    name: str
    meaning: str
    clauses: tuple[str, ...]

    @property
    def anchor(self) -> str:
        """Its anchor on the page."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


def words(glossary: str, clauses: Mapping[str, Clause]) -> list[Word]:
    """The words of a glossary, in its order."""
    table, _, _ = glossary.partition("\n## ")
    rows = [(m["word"], m["meaning"]) for m in _ROW.finditer(table) if m["word"] not in ("word", "---")]
    texts = {id_: f"{c.text} {c.reason}" for id_, c in clauses.items()}
    return [Word(name, meaning, _used(name, texts)) for name, meaning in rows]


def _used(name: str, texts: Mapping[str, str]) -> tuple[str, ...]:
    """The clauses that use a word, in one or many: `block table, table`, `sequence`."""
    forms = "|".join(re.escape(form.strip("`() ")) for form in name.split(","))
    pattern = re.compile(rf"(?<![\w-])(?:{forms})(?:s|es)?(?![\w-])", re.I)
    return tuple(id_ for id_, text in texts.items() if pattern.search(text))
