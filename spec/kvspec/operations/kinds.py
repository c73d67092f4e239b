"""Which operations each kind of cache has: those of its own chapter, and those of chapters about several kinds."""

from __future__ import annotations

from kvspec.geometry import CACHES, KINDS
from kvspec.operations.table import CHAPTER_OF, OPERATIONS

SEVERAL = ("growing", "ring", "store")
"""The kinds whose rows have positions that other chapters count in."""

BY_CHAPTER: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("mask", "snapshot", "draft"), CACHES),
    "batch": ("store",),
    "mem": (*SEVERAL, "copy", "page"),
    "attention": ("store",),
    "rope": SEVERAL,
}
"""The kinds that have a chapter's operations; where none is named, the one that is named like the chapter."""

BY_NAME: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("open", "scribble"), KINDS),
    **dict.fromkeys(("append", "attend"), (*SEVERAL, "page")),
    **dict.fromkeys(("view", "ask", "rewind", "free"), CACHES),
    "fit": SEVERAL,
}
"""Operations that not all of those have, or more."""


def kinds_of(operation: str) -> tuple[str, ...]:
    """The kinds of cache that have an operation."""
    if operation in BY_NAME:
        return BY_NAME[operation]
    chapter = CHAPTER_OF[operation]
    return BY_CHAPTER.get(chapter, (chapter,))


OF_KIND: dict[str, frozenset[str]] = {
    kind: frozenset(op for op in OPERATIONS if kind in kinds_of(op)) for kind in KINDS
}
"""The operations that a cache of each kind has."""
