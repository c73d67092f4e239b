"""Real bugs, planted in the reference: each is an entry of a public catalogue of bugs, and must be caught.

`tests/planted_<profile>.py` lists those of a chapter as `PLANTED`; `tests/test_planted.py` plants them one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Planted:
    """One bug: where it was seen, the clauses it breaks (which link to it), and an adapter that has it."""

    entry: str
    """Its id in the catalogue: SPEC-03."""
    url: str
    """Where it was seen; a clause among `clauses` links to it."""
    clauses: tuple[str, ...]
    """At least one of these must be blamed."""
    adapter: Callable[[], Any]
    """Makes the adapter: a subclass of `kvadapters.reference.Reference` with one thing changed."""
