"""Clauses as reports see them: their texts, their chapters, their order and their anchors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from kvspec.contract import CHAPTERS
from kvspec.records.run import ClauseRecord

ID = re.compile(r"([A-Z][A-Z0-9]*)-([0-9]{1,6})")


class ClauseText(Protocol):
    """A clause of the spec. `text` and `reason` are small Markdown: `code`, *emphasis*, links."""

    @property
    def id(self) -> str:
        """RING-4."""

    @property
    def chapter(self) -> str:
        """The chapter it stands in."""

    @property
    def level(self) -> str:
        """visible or storage."""

    @property
    def text(self) -> str:
        """The rule."""

    @property
    def reason(self) -> str:
        """Why the rule is as it is; may be empty."""


Clauses = Mapping[str, ClauseText]


class FromRecord:
    """A clause that this spec does not have, as the record describes it."""

    def __init__(self, record: ClauseRecord) -> None:
        self.id = record.id
        self.chapter = record.chapter
        self.level = record.level
        self.text = record.text
        self.reason = ""


def order(id_: str) -> tuple[str, int, str]:
    """Sorts RING-4 before RING-11."""
    match = ID.fullmatch(id_)
    return (match[1], int(match[2]), id_) if match else (id_, 0, id_)


def chapter_order(chapter: str) -> tuple[int, str]:
    """Sorts chapters as the spec does, unknown ones last."""
    return (CHAPTERS.index(chapter) if chapter in CHAPTERS else len(CHAPTERS), chapter)


def anchors(ids: list[str]) -> dict[str, str]:
    """The anchor of each clause on a page: its id, or an invented one where the id has another form."""
    return {id_: id_ if ID.fullmatch(id_) else f"clause-{n}" for n, id_ in enumerate(ids, 1)}
