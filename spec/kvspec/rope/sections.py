"""Sections of RoPE for images and videos, which is called M-RoPE elsewhere: a row has three positions.

`16,24,24` says how many pairs of elements are turned by a row's time, by its height in an image, and by its width.
They follow each other, or take turns if `:interleaved` stands behind. The chapter ROPE says which is which.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kvspec.operations.texts import SECTIONS


class Sections(NamedTuple):
    """How many pairs are turned by each position of a row, and whether they take turns."""

    time: int
    height: int
    width: int
    interleaved: bool = False


def parsed(text: str | None) -> Sections | None:
    """Read a text that `SECTIONS` describes; None if there is none. Raises ValueError for any other text."""
    if text is None:
        return None
    if not re.fullmatch(SECTIONS, text):
        raise ValueError(f"{text!r} are no sections of RoPE")
    pairs, _, order = text.partition(":")
    time, height, width = map(int, pairs.split(","))
    return Sections(time, height, width, order == "interleaved")
