"""Performs each operation of a trace on caches that follow the contract: one module for each chapter.

Each module has a table `DO`, and `look` if its chapter opens a kind. `DO` maps operations to functions of a
session, the cache, the operation, the step to fill, and the inputs; `look` observes a cache after every operation.
A chapter's module is read when the first of its operations is performed, or the first of its caches is observed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from kvspec.errors import NotWhole
from kvspec.operations.table import CHAPTER_OF
from kvspec.registry import KINDS, RECORDS, objects

Do = Callable[..., None]


@cache
def performs(operation: str) -> Do:
    """Give what performs an operation. Raises NotWhole for a chapter whose module performs others than its own."""
    return of_chapter(CHAPTER_OF[operation])[operation]


def of_chapter(chapter: str) -> dict[str, Do]:
    """Give what performs the operations of a chapter. Raises NotWhole."""
    do: dict[str, Do] = objects(__name__, "DO", (chapter,)).get(chapter, {})
    own = {each.name for each in RECORDS[chapter].operations}
    for name in sorted({*do} ^ own):
        lacks = f"{__name__}.{chapter}: DO has no {name!r}, an operation of chapters/{chapter}.toml"
        raise NotWhole(lacks if name in own else f"{__name__}: DO has {name!r}, which is no operation of a chapter")
    return do


@cache
def observes(kind: str) -> Do:
    """Give what observes a kind of cache. Raises NotWhole for a chapter that is no kind, and for one that has
    nothing to observe it."""
    look: dict[str, Do] = objects(__name__, "look", (kind,))
    if {*look} != {kind} & {*KINDS}:
        raise NotWhole(f"{__name__}.{kind}: `look` belongs to each kind of cache, and to nothing else")
    return look[kind]
