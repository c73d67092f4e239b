"""Rename keys in frozen vectors and published records: `profile` is now `kind` (what is opened) or `chapter`.

Text is replaced, nothing is parsed and written again, so that everything else stays as it is to the byte.

Run it once, from the root of the repository.
"""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

VECTORS = Path("spec/kvspec/vectors")
PUBLISHED = Path("reports/published")
CHAPTERS_WERE, COVERS_WERE = "c38288272bcea545", "b029ad036d798708"
NOTATION = re.compile(r"\bprofile=")
CODE = (
    (re.compile(r"(?<=\w)\.profile\b"), ".kind"),
    (re.compile(r"\bprofile (?=[!=]=)"), "kind "),
    (re.compile(r"', profile\)"), "', kind)"),
    (re.compile(r"has no attribute 'profile'"), "has no attribute 'kind'"),
    (re.compile(r"Declares every profile and"), "Declares every chapter and"),
)
"""What the ids and texts of systematic mutants quote of the code, and one docstring."""


def quoted(text: str) -> str:
    """Operations and code as they are written now."""
    text = NOTATION.sub("kind=", text)
    for pattern, new in CODE:
        text = pattern.sub(new, text)
    return text


def cover(text: str) -> str:
    """A file of covers: its fourth line names the chapter, each cover its kind."""
    text = text.replace('"kvvectors": 1', '"kvvectors": 2', 1).replace('\n "profile": ', '\n "chapter": ', 1)
    return quoted(text.replace('"profile": ', '"kind": '))


def vectors(text: str) -> str:
    """A file of vectors: its first line names the chapter, vectors and what they open their kind."""
    head, rest = text.split("\n", 1)
    head = head.replace('"kvvectors": 2', '"kvvectors": 3').replace('"profile": ', '"chapter": ')
    body, end = rest[: rest.rindex("\n]}")], rest[rest.rindex("\n]}") :]
    blocks = [renamed(block) for block in re.split(r",\n(?= \{\"id\")", body)]
    found = [b for b in blocks if '{"id": "systematic/' in b]
    first = [b for b in blocks if b not in found]
    return head + "\n" + ",\n".join([*first, *sorted(found)]) + end


def renamed(block: str) -> str:
    """One vector. The id of a systematic one is a hash of its trace's text."""
    new = quoted(block.replace('"profile": ', '"kind": '))
    was, now = (re.search(r'"words": "([^"]*)"', text)[1] for text in (block, new))  # type: ignore[index]
    if '{"id": "systematic/' in block and was != now:
        old = hashed(was)
        assert f'"systematic/{old}"' in block, old
        new = new.replace(f'"systematic/{old}"', f'"systematic/{hashed(now)}"')
    return new


def hashed(words: str) -> str:
    """The digits of a systematic vector's id."""
    return sha256(words.encode()).hexdigest()[:10]


def record(text: str, now: dict[str, str]) -> str:
    """The record of a run: clauses and the selection name chapters, traces their kind."""
    text = re.sub(r'"kvrecord": ?1\b', '"kvrecord": 2', text, count=1).replace('"profiles": ', '"chapters": ')
    text = re.sub(r'("selection": \{[^}]*)"examples": ', r'\1"traces": ', text, count=1)
    text = re.sub(r'("id": "[A-Z]+-\d+",\s*)"profile": ', r'\1"chapter": ', text)
    text = text.replace("does not declare the profile ", "does not declare the chapter ")
    text = text.replace("it speaks of the profile ", "it speaks of the chapter ")
    return quoted(rehashed(text.replace('"profile": ', '"kind": '), now))


def profile(text: str, now: dict[str, str]) -> str:
    """The record of a profile names the chapters of its adapter."""
    text = re.sub(r'"kvprofile": ?1\b', '"kvprofile": 2', text, count=1)
    return rehashed(text.replace('"profiles": ', '"chapters": '), now)


def rehashed(text: str, now: dict[str, str]) -> str:
    """Chapters and covers differ by the same renaming, so their hashes do."""
    for was, is_ in now.items():
        text = text.replace(f'"hash": "{was}"', f'"hash": "{is_}"', 1)
    return text


def main() -> None:
    """Rewrite everything that is frozen or published."""
    for file in sorted(VECTORS.glob("*.json")):
        change = cover if file.name.startswith("cover-") else vectors
        file.write_text(change(file.read_text(encoding="utf-8")), encoding="utf-8")
    from kvconform.vectors import digest
    from kvspec.reading import clauses

    now = {CHAPTERS_WERE: clauses.digest(), COVERS_WERE: digest()["hash"]}
    for file in sorted(PUBLISHED.glob("*/*.json")):
        text = file.read_text(encoding="utf-8")
        if file.name == "mutants.json":
            text = rehashed(quoted(text), now)
        else:
            text = (profile if file.name == "profile.json" else record)(text, now)
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
