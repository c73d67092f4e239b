"""What a mutant is: an adapter with one thing wrong, and what is known of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Mutant:
    """One wrong adapter. It says what is wrong with it, and which clauses that breaks."""

    id: str
    """Unique among all: `SPEC-01/LosesTheLast`, `reference/ring.rewind: to < 0: Lt swapped`."""
    cls: str
    """The class of bug: one of the catalogue's such as SPEC, or `systematic`, or `control`."""
    says: str
    """What it does, in a sentence."""
    clauses: tuple[str, ...]
    """The clauses it breaks; one of them should be blamed. Empty where none is known."""
    adapter: Callable[[], Any]
    """Makes the adapter."""
    link: str = ""
    """Where the bug was seen."""
    anomaly: str = ""
    """The id of the anomaly that a planted bug is."""
    chapters: tuple[str, ...] = ()
    """Whose traces are tried, in this order."""
    place: tuple[str, ...] = ()
    """Where a systematic fault is, its function before its module: `reference/ring.rewind`, `reference/ring`."""
    equivalent: str = ""
    """Why no trace can find it; empty where one must."""
    lives: bool = False
    """Whether it is none at all, but a control that must not be found."""
    first_is_enough: bool = False
    """Whether the first source that finds it ends the hunt: for mutants of which there are thousands."""
    alone: bool = False
    """Whether a process that hunted it hunts no other: it may have written anywhere."""
    limit: float = 0.0
    """Seconds of the processor for a trace, after which its process is ended; 0 for none. A handler of Python's
    does not interrupt what never comes back from a library."""


def says(bug: Callable[..., Any]) -> str:
    """What a class or a function that is wrong says of itself: its docstring, in a line."""
    return " ".join((bug.__doc__ or "").split())


def numbered(names: Sequence[str]) -> Iterator[str]:
    """Each name; where several are alike, with its number among those: `a #1`, `a #2`."""
    count, seen = Counter(names), Counter[str]()
    for name in names:
        seen[name] += 1
        yield f"{name} #{seen[name]}" if count[name] > 1 else name
