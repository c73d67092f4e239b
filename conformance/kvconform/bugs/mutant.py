"""What a mutant is: an adapter that is wrong on purpose, or a control."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Mutant:
    """An adapter that is wrong on purpose, or a control, and what is known of it."""

    id: str
    """Unique among all: `SPEC-01/LosesTheLast`, `reference/ring.rewind: to < 0: Lt swapped`."""
    bug_class: str
    """A class of the catalogue such as SPEC; or `anomaly`, `systematic`, `control`, `fake`."""
    says: str
    """What it does, in a sentence."""
    clauses: tuple[str, ...]
    """The clauses it breaks; one of them should be blamed. Empty where none is known."""
    adapter: Callable[[], Any]
    """Makes the adapter."""
    link: str = ""
    """Where the bug was seen."""
    anomaly: str = ""
    """The id of the anomaly, of a planted bug."""
    chapters: tuple[str, ...] = ()
    """The chapters whose traces are tried, in this order; empty for those of its clauses."""
    place: tuple[str, ...] = ()
    """Where a systematic fault is, its function before its module: `reference/ring.rewind`, `reference/ring`."""
    equivalent: str = ""
    """Why no trace can find it; empty where one must."""
    is_control: bool = False
    """True for a control: a correct cache, which the suite must not fail."""
    stop_at_first_kill: bool = False
    """True if the hunt ends with the first source that finds it: for kinds with thousands of mutants."""
    own_process: bool = False
    """True if it is hunted in a process of its own, because it may write anywhere."""
    limit: float = 0.0
    """Seconds of the processor for a trace, after which its process is ended; 0 for no limit. Python's own signal
    handlers do not interrupt a library that never returns."""


def says(bug: Callable[..., Any]) -> str:
    """The docstring of a wrong class or function, in one line."""
    return " ".join((bug.__doc__ or "").split())


def numbered(names: Sequence[str]) -> Iterator[str]:
    """Each name. Equal names are numbered: `a #1`, `a #2`."""
    count, seen = Counter(names), Counter[str]()
    for name in names:
        seen[name] += 1
        yield f"{name} #{seen[name]}" if count[name] > 1 else name
