"""Gives the strategies that the suite explores in each chapter, for an adapter that declares everything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvconform.generate import strategies
from kvspec.registry import modules


def of(chapter: str) -> Iterator[Any]:
    """Give the strategies of a chapter's traces, one for each exploring test of the suite."""
    if chapter in (room := modules(strategies.__name__)):
        yield from room[chapter].strategies()
