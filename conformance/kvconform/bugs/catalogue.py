"""The public catalogue of real bugs: its classes, where each entry was seen, and what is not planted here."""

from __future__ import annotations

from typing import NamedTuple

from kvspec.tables import table


class BugClass(NamedTuple):
    """A class of bugs."""

    name: str
    """What the catalogue calls it."""
    says: str
    """What goes wrong."""
    anomaly: str
    """The anomaly of most of them; the others name theirs where they are planted."""


_CATALOGUE = table("kvconform.bugs", "catalogue")

CLASSES = {letters: BugClass(**row) for letters, row in _CATALOGUE["classes"].items()}
"""The classes, by the letters with which their entries begin."""

SEEN: dict[str, str] = {entry: f"https://github.com/{path}" for entry, path in _CATALOGUE["seen"].items()}
"""Where each planted entry was seen."""

NOT_PLANTED: dict[str, str] = _CATALOGUE["not_planted"]
"""The entries that are not planted, and why. All others are."""
