"""What a misspelt name may have meant: the end of a message."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LONGEST = 200
"""Characters of a name that is looked up; a longer one is no slip of the hand."""


def did_you_mean(name: object, known: Iterable[str], most: int = 3) -> str:
    """Give `; did you mean append or open?` with the names that are most like it; empty if none is like it. Names
    that differ only in their case are alike."""
    text, names = str(name)[:LONGEST], {n.lower(): n for n in reversed(list(known))}
    near = [names[n] for n in difflib.get_close_matches(text.lower(), names, most)]
    return f"; did you mean {' or '.join(near)}?" if near else ""
