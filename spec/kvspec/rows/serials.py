"""Serials: the number of each row ever appended in a trace, and the letters that people read in its place."""

from __future__ import annotations

import re

ILLEGIBLE, POISONED, ZEROED = -1, -2, -3
"""Instead of a serial: a row that has none, a row of NaN only, and a row of zeros."""

BEFORE = -16
"""The serial of position -1, a row of zeros before all others: position -2 has one less, and so on."""

BASE = 128
"""Values of one element of a legible row."""


def largest(dim: int) -> int:
    """Count the serials that rows of this dimension can distinguish."""
    return BASE ** (1 if dim < 4 else 2 if dim < 5 else 3)


def places(dim: int) -> tuple[int, int]:
    """Count the heads and the sequences that rows of this dimension can distinguish."""
    return {1: (8, 1), 2: (128, 128), 3: (2048, 128), 4: (2048, 2048)}.get(dim, (1 << 15, 2048))


def plain(serial: int) -> int:
    """Give the name by which a row is read: rows of zeros before position 0 are read as others are."""
    return ZEROED if serial <= BEFORE else serial


def letters(serial: int) -> str:
    """Write serials as letters: a..z, then a1..z1, a2 and so on."""
    if serial < 0:
        return {ZEROED: ".", POISONED: "~"}.get(plain(serial), "?")
    round_, letter = divmod(serial, 26)
    return "abcdefghijklmnopqrstuvwxyz"[letter] + (str(round_) if round_ else "")


def serial(name: str) -> int:
    """Read a serial from letters; `.` is a row of zeros, `~` a poisoned one. Raises ValueError."""
    if name in (".", "~"):
        return ZEROED if name == "." else POISONED
    if not re.fullmatch("[a-z][0-9]{0,9}", name):
        raise ValueError(f"{name!r} names no row; rows are a..z, a1..z1, ...")
    return ord(name[0]) - ord("a") + 26 * int(name[1:] or 0)
