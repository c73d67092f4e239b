"""The parts that recipes of large traces share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

NARROW = "kv_heads=1 k_dim=5 v_dim=5"
"""The narrowest rows that tell two million positions apart."""


@dataclass(frozen=True)
class Recipe:
    """How to make a trace that meets a boundary of a size of a chapter."""

    chapter: str
    size: str
    make: Callable[[int, Random], str]
    most: int = 65537
    least: int = 1
    widths: bool = False
    """Whether the widths of heads are boundaries too."""
    at: tuple[int, ...] = ()
    """The boundaries, where they are not those from `least` to `most`."""
    beside: tuple[str, ...] = ()
    """Chapters that it takes beside its own."""
    on: tuple[str, ...] = ()
    """Kinds of cache that its traces are about, whichever is claimed: made for the first, moved to another."""
    needs: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "needs", frozenset((self.chapter, *self.beside)))


def unseen(*ops: str, times: int = 1) -> str:
    """Operations in a run, without those that are empty. The last is observed, and should be small."""
    return f"run {times} {{{'; '.join(filter(None, ops))}}}; " if any(ops) and times else ""


def append(n: int) -> str:
    """An append of n rows; an empty text for none."""
    return f"append {n}" if n > 0 else ""


def chunks(n: int, random: Random) -> list[str]:
    """Appends of n rows in all: at once, or in two or three of any sizes, or in equal ones."""
    way, cuts = random.randrange(4), sorted(random.sample(range(1, max(2, n)), min(max(0, n - 1), 2)))
    if way == 0 or n < 3:
        return [append(n)]
    if way == 1:
        each = random.choice([c for c in (7, 16, 64, 100, 256, 512, 1000) if c <= n] or [1])
        return [f"append {each}"] * min(n // each, 60) + [append(n - min(n // each, 60) * each)]
    edges = [0, *cuts[: way - 1], n]
    return [append(b - a) for a, b in pairwise(edges)]


def some(n: int, random: Random, *usual: int) -> int:
    """A second size for a trace with size n: a usual one, one that divides n, n itself, or one less or more."""
    halves = [n // d for d in (2, 4, 16) if n % d == 0 and n // d > 1]
    return random.choice([*usual, *halves, n, max(1, n - 1), n + 1])
