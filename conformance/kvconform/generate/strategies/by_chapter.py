"""What the suite explores of each chapter, where an adapter declares all that there is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvconform.generate.strategies import (
    attention,
    batch,
    bucket,
    caches,
    copy,
    draft,
    mem,
    page,
    residency,
    rope,
    store,
)
from kvspec.registry import CACHES

OWN = {"attention": attention, "batch": batch, "bucket": bucket, "copy": copy, "rope": rope, "store": store}
"""Chapters that are explored in one way."""

MEASURED = (*CACHES, "store", "batch")
COSTLY = (*MEASURED, "copy", "bucket", "page", "attention")
"""Whose traces are explored with plans, and with rows that are on the device."""


def of(chapter: str) -> Iterator[Any]:
    """The strategies of a chapter's traces, one for each test of the suite that explores it."""
    if chapter in OWN:
        yield OWN[chapter].explored()
    elif chapter in CACHES:
        yield caches.traces(chapter, caches.BASE)
    elif chapter == "mask":
        yield from (caches.traces(kind, caches.MASKS) for kind in CACHES)
    elif chapter == "snapshot":
        yield from (
            caches.traces(kind, kinds) for kind in CACHES for kinds in (caches.SNAPSHOTS, caches.EVERYTHING)
        )
    elif chapter == "draft":
        yield from (draft.explored(), draft.explored(draft.EVERYTHING))
    elif chapter == "page":
        yield from (page.explored(), page.explored(more=("attend",) * 5))
    elif chapter == "mem":
        yield from map(mem.explored, MEASURED)
    elif chapter == "residency":
        yield from map(residency.explored, COSTLY)
