"""Chapters and code speak of the same clauses; chapters are read strictly, and their links are safe."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import kvadapters
import kvconform
import kvref
import kvspec
from kvconform.bugs import catalogue, known_bugs
from kvconform.laws import registry
from kvspec import chapters, costs
from kvspec.chapters import TEXTS
from kvspec.contract import CHAPTERS
from kvspec.errors import BadInput
from kvspec.reading import clauses
from kvspec.reading.clauses import Clause, chapter_text, index, read, withdrawn
from kvspec.reading.moved_clauses import moved
from kvspec.registry import KINDS, LETTERS, opened

_ID = re.compile(rf"\b(?:{'|'.join(LETTERS)})-\d+\b")


def text_of(package: object, *patterns: str) -> str:
    folder = Path(package.__file__).parent  # type: ignore[attr-defined]
    files = [f for pattern in patterns or ("**/*.py", "**/*.toml") for f in sorted(folder.glob(pattern))]
    assert files, patterns
    return "\n".join(f.read_text() for f in files)


REFERENCE = "".join(text_of(kvref, f"{room}/*.py") for room in ("caches", "abilities", "arithmetic", "memory"))
LISTS = text_of(kvref.list_model)
OPERATION = (
    text_of(kvconform, "oracle/citing.py", "judge/ledger.py")
    + text_of(kvadapters, "reference.py")
    + text_of(costs)
    + text_of(chapters)
)


@pytest.mark.parametrize("package", [kvref, kvspec, kvconform, kvadapters])
def test_every_clause_that_code_names_exists(package: object) -> None:
    named = set(_ID.findall(text_of(package)))
    bugs = {m.id.partition("/")[0] for m in known_bugs.real()} | set(catalogue.NOT_PLANTED)
    assert named - {*index(), *moved()} - bugs == set()


def _bound(level: str) -> list[Clause]:
    return [c for c in index().values() if not c.law and (c.level == level or level == "any")]


def test_the_reference_names_every_clause_it_enforces() -> None:
    cited = set(_ID.findall(REFERENCE + OPERATION))
    assert {c.id for c in _bound("any")} - cited == set()


def test_the_list_model_names_every_clause_of_what_is_visible() -> None:
    cited = set(_ID.findall(LISTS + OPERATION + text_of(kvconform, "judge/levels/visible.py")))
    assert {c.id for c in _bound("visible")} - cited == set()


def test_laws_are_those_clauses_that_are_marked_so() -> None:
    assert {law.clause for law in registry.LAWS} == {c.id for c in index().values() if c.law}
    assert all(set(law.needs) <= set(CHAPTERS) and law.kind in law.needs for law in registry.LAWS)


def test_what_every_cache_owes_is_stated_for_every_cache() -> None:
    for kind in KINDS:
        for clause in filter(None, (opened(kind).ownership, opened(kind).bits, opened(kind).opens)):
            assert kind in index()[clause].chapters


@pytest.mark.parametrize("prefix", LETTERS)
def test_clauses_are_numbered_without_a_gap_but_those_that_were_withdrawn(prefix: str) -> None:
    ids = [c for c in (*index(), *withdrawn()) if c.startswith(prefix + "-")]
    assert sorted(ids) == sorted(f"{prefix}-{n + 1}" for n in range(len(ids)))


def test_what_took_the_place_of_a_withdrawn_clause_is_named_and_exists() -> None:
    assert withdrawn()
    for why in withdrawn().values():
        assert set(_ID.findall(why)) <= {*index(), *withdrawn()}


def test_every_clause_is_a_sentence_with_an_example_of_its_own() -> None:
    for c in index().values():
        assert c.text.endswith(".") and c.examples and c.seen_in, c.id
        assert [e.id for e in c.examples] == [f"{c.id}.{n + 1}" for n in range(len(c.examples))]


SMALL = """# A chapter

**RING-1** (visible; seen in history). A sentence.

*Why:* a reason.

Example RING-1.1, ring window=3

| do | offset | slots |
|---|---|---|
| append 3 | 3 | a b c |
| rewind 5 | refused CACHE-7 | a b c |
"""


def parsed(text: str) -> list[Clause]:
    return read("RING", "ring", text)


def test_a_small_chapter_is_read() -> None:
    (clause,) = parsed(SMALL)
    assert (clause.text, clause.reason, clause.level, clause.seen_in) == (
        "A sentence.",
        "a reason.",
        "visible",
        ("history",),
    )
    assert [row.said for row in clause.examples[0].rows][1] == {"offset": "refused CACHE-7", "slots": [0, 1, 2]}


MISTAKES: dict[str, tuple[Callable[[str], str], str]] = {
    "a misspelt example": (lambda t: t.replace("Example RING", "Exampel RING"), "needs a worked example"),
    "an example of small letters": (lambda t: t.replace("Example RING", "example RING"), "needs a worked example"),
    "a foreign example": (lambda t: t.replace("Example RING-1.1", "Example RING-2.1"), "of its own"),
    "an example without a number": (lambda t: t.replace("Example RING-1.1", "Example RING-1"), "needs a worked"),
    "an example outside": (lambda t: "Example RING-1.1, ring\n\n" + t, "lines begin with Example"),
    "an example twice as long": (
        lambda t: t + "\nExample RING-1.2, ring window=3\n\nand no table\n",
        "lines begin",
    ),
    "a clause of another chapter": (lambda t: t.replace("**RING-1**", "**GROW-1**"), "must begin with RING-"),
    "a clause of no level": (
        lambda t: t.replace("(visible;", "(audible;"),
        "must begin with RING-, and have a level",
    ),
    "a clause of no mark": (lambda t: t.replace("(visible;", "(visible, spiral;"), "then kinds of cache or law"),
    "a clause seen nowhere": (
        lambda t: t.replace("seen in history", "seen in mirrors"),
        "is seen in \\['mirrors'\\]",
    ),
    "a clause without brackets": (lambda t: t.replace(" (visible; seen in history).", "."), "not a clause"),
    "a misspelt clause": (lambda t: t.replace("**RING-1** (", "**RING-1**("), "not a clause"),
    "a clause numbered 0": (lambda t: t.replace("RING-1", "RING-0"), "not a clause"),
    "an unknown column": (
        lambda t: t.replace("| slots |", "| slits |"),
        "columns are do, .*found do, offset, slits",
    ),
    "no do": (lambda t: t.replace("| do |", "| op |"), "columns are do"),
    "a cell too few": (
        lambda t: t.replace("| append 3 | 3 | a b c |", "| append 3 | 3 |"),
        "every row needs 3 cells",
    ),
    "a cell too many": (lambda t: t.replace("| append 3 | 3 |", "| append 3 | 3 | |"), "every row needs 3 cells"),
    "an unknown operation": (lambda t: t.replace("append 3 ", "expand 3 "), "unknown operation"),
    "an offset of letters": (lambda t: t.replace("| 3 | a", "| three | a"), "an offset is a number"),
    "a refusal of no clause": (
        lambda t: t.replace("refused CACHE-7", "refused"),
        "an offset is a number or 'refused",
    ),
    "a row of capitals": (lambda t: t.replace("a b c |\n| rew", "a B c |\n| rew"), "'B' names no row"),
    "an unknown kind": (lambda t: t.replace("1.1, ring ", "1.1, spiral "), "kind is 'spiral'"),
    "an unknown field": (lambda t: t.replace("window=3", "window=3 depth=2"), "unknown field 'depth'"),
    "a table that breaks off": (lambda t: t.replace("| append 3 | 3 | a b c |\n", "append 3\n"), "worked example"),
}


@pytest.mark.parametrize(("mistake", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_a_chapter_is_an_error_and_not_a_comment(mistake: Callable[[str], str], words: str) -> None:
    changed = mistake(SMALL)
    assert changed != SMALL
    with pytest.raises(BadInput, match=words) as e:
        parsed(changed)
    assert str(e.value).startswith("ring.md")


def test_a_clause_that_stands_twice_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    text = SMALL + "\n" + SMALL.partition("\n\n")[2]
    monkeypatch.setattr(clauses, "chapter_text", lambda chapter: text if chapter == "ring" else "")
    with pytest.raises(BadInput, match="RING-1 stands twice"):
        clauses.index.__wrapped__()


_LINK = re.compile(r"\]\(\s*([^)]*?)\s*\)", re.S)


@pytest.mark.parametrize("chapter", TEXTS)
def test_links_in_chapters_are_whole_and_secure(chapter: str) -> None:
    text = chapter_text(chapter)
    links = [re.sub(r"\s+", "", link) for link in _LINK.findall(text)]
    assert len(links) >= 3
    wrong = [x for x in links if not re.fullmatch(r"https://[\w.-]+/[\w./#?=&%+~:@-]*|[\w-]+\.md(#[\w-]+)?", x)]
    assert wrong == [] and "http://" not in text


def test_a_clause_has_one_reason() -> None:
    parts = [part for p in TEXTS for part in chapter_text(p).split('<a id="')]
    assert [part.partition('"')[0] for part in parts if part.count("*Why:*") > 1] == []


def test_no_rule_leads_to_a_withdrawn_clause() -> None:
    gone = {(c.id, i) for c in index().values() for i in _ID.findall(c.text) if i in withdrawn()}
    assert gone == set()


def test_references_between_clauses_lead_somewhere() -> None:
    named = {i for p in TEXTS for i in _ID.findall(chapter_text(p))}
    assert named | {*moved()} == {*index(), *withdrawn()}


RULES = {
    "a sentence": ("the window counts the query itself", "the window leaves the query out"),
    "a level": ("**RING-1** (visible;", "**RING-1** (storage;"),
    "what it is seen in": ("(visible; seen in history)", "(visible; seen in view)"),
    "a cell": ("| append 1 | 4 | b c d |", "| append 1 | 4 | c d |"),
    "where an example begins": ("Example RING-1.1, ring window=3", "Example RING-1.1, ring window=3 step=1"),
    "what a word means": ("the offset is then greater by n", "the offset is greater by n"),
    "what stands between": ("An append of one row is called *decode*", "An append of a row is called *decode*"),
}
"""Changes of the chapter `ring` that change what it demands."""

WORDS = {
    "a reason": ("*Why:* engines disagree", "*Why:* engines do not agree"),
    "the end of a reason": ("at all.\n\nExample RING-1.1", "here.\n\nExample RING-1.1"),
    "an anchor": ('<a id="RING-1"></a>\n', ""),
    "where a line ends": ("exactly the rows of the positions", "exactly the rows\nof the positions"),
}
"""Changes that only explain it otherwise."""


@pytest.mark.parametrize(("change", "same"), [*((c, False) for c in RULES), *((c, True) for c in WORDS)])
def test_records_name_the_rules_and_not_the_words_around_them(
    change: str, same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    was, now = (RULES | WORDS)[change]
    texts = {chapter: chapter_text(chapter) for chapter in TEXTS}
    before, ring = clauses.digest(), texts["ring"]
    assert was in ring
    monkeypatch.setattr(clauses, "chapter_text", (texts | {"ring": ring.replace(was, now, 1)}).__getitem__)
    monkeypatch.setattr(clauses, "index", index.__wrapped__)
    assert (clauses.digest() == before) == same
