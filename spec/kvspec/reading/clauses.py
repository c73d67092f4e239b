"""The clause index, read from the chapters: what each clause says, at which level, and its worked examples.

A chapter is Markdown. A clause is a paragraph that begins

    <a id="CACHE-1"></a>
    **CACHE-1** (visible; seen in history). One normative sentence.

Above it stands the anchor that links lead to. The brackets have its level, and the cache it speaks of if it is
only one (`visible, growing`). `law` marks a clause that relates whole traces to each other. Last come the
observables in which a breach shows. `*Why:*` paragraphs and examples follow it. Reading is strict: a line that
looks like a clause or an example but cannot be read is an error, never a comment. `read` reads all at once.
`index` reads the examples of a clause only when they are asked for, which saves every process a fifth of a second
at its start.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import resources
from itertools import pairwise

from kvspec.chapters import GENERAL
from kvspec.contract import LEVELS
from kvspec.errors import BadInput
from kvspec.reading.examples import Example, parse
from kvspec.reading.moved_clauses import moved
from kvspec.registry import KINDS, LETTERS, RECORDS, TENSORS, VALUES, opened

SEEN_IN = ("result", "sees", *VALUES, *TENSORS)
"""The observables in which a difference can show. `sees`: the rows that a query sees through a mask."""

_CLAUSE = re.compile(
    r"^\*\*(?P<id>[A-Z]+-[1-9]\d*)\*\* \((?P<level>\w+)(?P<marks>(?:,\s\w+)*);\sseen\sin\s(?P<seen>[\w,\s]+)\)\.\s"
    r"(?P<text>.+?)(?=\n\n|\Z)",
    re.M | re.S,
)
_ANCHOR = re.compile(r'^<a id="([A-Z]+-[1-9]\d*)"></a>\n', re.M)
"""The line above a clause that links lead to."""

_WITHDRAWN = re.compile(r'^- <a id="([A-Z]+-[1-9]\d*)"></a>\1: (.+)$', re.M)
"""A line of a chapter's list of clauses that are no more."""

WHY = "*Why:*"
"""How a paragraph begins that gives the reason of a clause."""


@dataclass(frozen=True)
class Clause:
    """One rule. `text` is its normative sentence, `reason` the paragraphs that say why (both small Markdown)."""

    id: str
    chapter: str
    level: str
    applies: tuple[str, ...]
    """The kinds of cache it applies to."""
    law: bool
    """Whether it relates whole traces to each other, so that no single step can test it."""
    seen_in: tuple[str, ...]
    text: str
    reason: str
    where: str
    """The file and the line."""
    rest: str
    """What follows the sentence, with the worked examples."""

    @property
    def general(self) -> bool:
        """Tell whether it says what holds for every kind."""
        return self.chapter == GENERAL

    @property
    def chapters(self) -> tuple[str, ...]:
        """Give the chapters whose traces show it: its own, or those of all the kinds it applies to."""
        return self.applies if self.general else (self.chapter,)

    def claimed(self, chapters: Collection[str]) -> bool:
        """Tell whether a claim of these chapters claims it."""
        return not set(self.chapters).isdisjoint(chapters)

    def on(self, chapters: Collection[str]) -> Clause:
        """Give it as it is judged where only these chapters are: a general clause speaks of their kinds alone."""
        return replace(self, applies=tuple(k for k in self.applies if k in chapters)) if self.general else self

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """Read its worked examples. Raises BadInput that names the line."""
        found = parse(self.rest, self.where)
        if not found or any(e.clause != self.id for e in found):
            raise BadInput(f"{self.where}: {self.id} needs a worked example of its own, and only such")
        return found

    @property
    def number(self) -> int:
        """Give the number in its id."""
        return int(self.id.partition("-")[2])


def chapter_text(chapter: str) -> str:
    """Read the chapter's Markdown."""
    return resources.files("kvspec").joinpath("chapters", f"{chapter}.md").read_text(encoding="utf-8")


def title(chapter: str) -> str:
    """Give a chapter's heading without its letters: *the rotating cache*."""
    return chapter_text(chapter).partition("\n")[0].partition(": ")[2]


@cache
def index() -> dict[str, Clause]:
    """Give all clauses by id, in the order of the chapters."""
    found = [c for prefix, chapter in LETTERS.items() for c in _clauses(prefix, chapter, chapter_text(chapter))]
    clauses = {c.id: c for c in found}
    if len(clauses) != len(found):
        twice = sorted({c.id for c in found if sum(d.id == c.id for d in found) > 1})
        raise BadInput(f"chapters: {', '.join(twice)} stands twice")
    return clauses


def examples_of(chapter: str, clauses: Collection[str] = ()) -> Iterator[Example]:
    """Give the worked examples of a chapter, or of some clauses in it: of its clauses, and those of general clauses
    on its kind."""
    for clause in index().values():
        if chapter in clause.chapters and (not clauses or clause.id in clauses):
            yield from (e for e in clause.examples if not clause.general or e.trace.kind == chapter)


@cache
def withdrawn() -> dict[str, str]:
    """Give the ids of clauses that are no more, and what took the place of each."""
    listed = {id_: why for chapter in LETTERS.values() for id_, why in _WITHDRAWN.findall(chapter_text(chapter))}
    return listed | {old: f"{new} says it for every kind" for old, new in moved().items()}


def digest() -> str:
    """Hash what binds a cache: all chapters without their reasons. A better reason, an anchor or the end of a line
    changes no rule, so no adapter has to be judged again for it."""
    paragraphs = (
        _plain(_ANCHOR.sub("", p)) for chapter in LETTERS.values() for p in _paragraphs(chapter_text(chapter))
    )
    return hashlib.sha256("\n".join(p for p in paragraphs if not p.startswith(WHY)).encode()).hexdigest()[:16]


def read(prefix: str, chapter: str, text: str) -> list[Clause]:
    """Read the clauses of one chapter, with their examples. Raises BadInput that names the line."""
    clauses = _clauses(prefix, chapter, text)
    written = len(re.findall(r"^ *example\b", text, re.M | re.I))
    parsed = sum(len(c.examples) for c in clauses)
    if written != parsed:
        raise BadInput(f"{chapter}.md: {written} lines begin with Example, {parsed} of them belong to a clause")
    return clauses


def _clauses(prefix: str, chapter: str, text: str) -> list[Clause]:
    starts = [m.start() for m in re.finditer(r"^\*\*[A-Z]+-\d", text, re.M)]
    blocks = pairwise([*starts, len(text)])
    return [_clause(prefix, chapter, text[a:b], f"{chapter}.md:{_line(text, a)}") for a, b in blocks]


def _clause(prefix: str, chapter: str, block: str, where: str) -> Clause:
    head = _CLAUSE.match(block)
    if head is None:
        raise BadInput(f"{where}: not a clause: {block.splitlines()[0]!r}")
    id_, level, marks = head["id"], head["level"], head["marks"].replace(",", " ").split()
    seen = tuple(s.strip() for s in head["seen"].split(","))
    if not id_.startswith(prefix + "-") or level not in LEVELS or not set(marks) <= {*KINDS, "law"}:
        raise BadInput(f"{where}: {id_} must begin with {prefix}-, and have a level, then kinds of cache or law")
    if not set(seen) <= set(SEEN_IN):
        raise BadInput(f"{where}: {id_} is seen in {sorted(set(seen) - set(SEEN_IN))}; known: {', '.join(SEEN_IN)}")
    only = _bound(id_) if chapter == GENERAL else _named(chapter, marks)
    text, rest = _plain(head["text"]), block[head.end() :]
    return Clause(id_, chapter, level, only, "law" in marks, seen, text, _reason(rest), where, rest)


def _bound(general: str) -> tuple[str, ...]:
    """The kinds whose records list a general clause."""
    return tuple(kind for kind in KINDS if general in opened(kind).general)


def _named(chapter: str, marks: Collection[str]) -> tuple[str, ...]:
    """The kinds that the brackets of a clause name; else those that its chapter speaks of."""
    default = RECORDS[chapter].speaks_of or ((chapter,) if chapter in KINDS else KINDS)
    return tuple(kind for kind in KINDS if kind in marks) or default


def _reason(rest: str) -> str:
    reasons = (p.strip() for p in _paragraphs(rest) if p.strip().startswith(WHY))
    return "\n\n".join(_plain(p.removeprefix(WHY).strip()) for p in reasons)


def _paragraphs(text: str) -> list[str]:
    return text.split("\n\n")


def _plain(text: str) -> str:
    return " ".join(text.split())


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


__all__ = ["SEEN_IN", "Clause", "chapter_text", "digest", "index", "read"]
