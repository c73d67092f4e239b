"""What the suite explores of each profile, where an adapter declares all that there is."""

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
from kvspec.geometry import CACHES

OWN = {"attention": attention, "batch": batch, "bucket": bucket, "copy": copy, "rope": rope, "store": store}
"""Profiles that are explored in one way."""

MEASURED = (*CACHES, "store", "batch")
COSTLY = (*MEASURED, "copy", "bucket", "page", "attention")
"""Whose traces are explored with plans, and with rows that are on the device."""


def of(profile: str) -> Iterator[Any]:
    """The strategies of a profile's traces, one for each test of the suite that explores it."""
    if profile in OWN:
        yield OWN[profile].explored()
    elif profile in CACHES:
        yield caches.traces(profile, caches.BASE)
    elif profile == "mask":
        yield from (caches.traces(kind, caches.MASKS) for kind in CACHES)
    elif profile == "snapshot":
        yield from (
            caches.traces(kind, kinds) for kind in CACHES for kinds in (caches.SNAPSHOTS, caches.EVERYTHING)
        )
    elif profile == "draft":
        yield from (draft.explored(), draft.explored(draft.EVERYTHING))
    elif profile == "page":
        yield from (page.explored(), page.explored(more=("attend",) * 5))
    elif profile == "mem":
        yield from map(mem.explored, MEASURED)
    elif profile == "residency":
        yield from map(residency.explored, COSTLY)
