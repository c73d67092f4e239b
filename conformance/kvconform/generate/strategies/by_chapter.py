"""What the suite explores of each chapter, where an adapter declares all that there is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvconform.generate import strategies
from kvspec.registry import modules


def of(chapter: str) -> Iterator[Any]:
    """The strategies of a chapter's traces, one for each test of the suite that explores it."""
    if chapter in (room := modules(strategies.__name__)):
        yield from room[chapter].strategies()
