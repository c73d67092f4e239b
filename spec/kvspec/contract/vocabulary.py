"""The words of the contract: levels, and what goes in and comes out."""

from __future__ import annotations

from typing import Literal, NamedTuple

from kvspec.geometry import Array

LEVELS = ("visible", "storage")
"""What a chapter can be claimed at; `storage` includes `visible`."""

Level = Literal["visible", "storage"]
Readable = Literal["history", "view", "state"]


class Pair(NamedTuple):
    """Key rows `[B, H, T, k_dim]` and value rows `[B, H, T, v_dim]` of the same T positions."""

    keys: Array
    values: Array


class Lengths(NamedTuple):
    """The four lengths that engines confuse. What an adapter cannot know (below level storage) is None."""

    offset: int
    """Tokens appended and not rolled back: the next token's position."""
    retained: int | None = None
    """Rows that can still be read."""
    buffered: int | None = None
    """Rows on the storage axis that the state returns."""
    capacity: int | None = None
    """Rows allocated."""
