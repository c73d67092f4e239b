"""The catalogue's classes of bugs: what each is called there, and what goes wrong in it."""

from __future__ import annotations

from typing import NamedTuple

from kvspec.reading.tables import table


class BugClass(NamedTuple):
    """A class of bugs."""

    name: str
    """What the catalogue calls it."""
    says: str
    """What goes wrong."""
    anomaly: str
    """The anomaly that most of them are; the others say theirs where they are planted."""


CLASSES = {letters: BugClass(**row) for letters, row in table("kvconform.mutants", "bug_classes").items()}
"""By the letters with which their entries begin."""
