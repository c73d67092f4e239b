"""Ids of clauses: their order, the order of their chapters, and their anchors."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kvspec.chapters import TEXTS

ID = re.compile(r"([A-Z][A-Z0-9]*)-([0-9]{1,6})")


def order(id_: str) -> tuple[str, int, str]:
    """Sorts CACHE-1 before CACHE-9."""
    match = ID.fullmatch(id_)
    return (match[1], int(match[2]), id_) if match else (id_, 0, id_)


def rank(item: str, ordered: Sequence[str]) -> int:
    """Sorts items in this order, unknown ones last."""
    return ordered.index(item) if item in ordered else len(ordered)


def chapter_order(chapter: str) -> tuple[int, str]:
    """Sorts chapters as the spec does, unknown ones last and by name."""
    return rank(chapter, TEXTS), chapter


def anchors(ids: list[str]) -> dict[str, str]:
    """The anchor of each clause on a page: its id, or an invented one where the id has another form."""
    return {id_: id_ if ID.fullmatch(id_) else f"clause-{n}" for n, id_ in enumerate(ids, 1)}
