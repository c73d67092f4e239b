"""The words of the contract: levels, what can be read, and lengths."""

from __future__ import annotations

from typing import Literal, NamedTuple

LEVELS = ("visible", "storage")
"""Levels at which a chapter can be claimed; `storage` includes `visible`."""

Level = Literal["visible", "storage"]
Readable = Literal["history", "view", "state"]


class Lengths(NamedTuple):
    """The four lengths that engines confuse. None for a length that the adapter does not know (below level
    storage)."""

    offset: int
    """Tokens appended and not rolled back: the next token's position."""
    retained: int | None = None
    """Rows that can still be read."""
    buffered: int | None = None
    """Rows on the storage axis of the returned state."""
    capacity: int | None = None
    """Rows allocated."""
