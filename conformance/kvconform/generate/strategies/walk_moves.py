"""What a chapter gives to walks: its moves on each kind. A kind also gives its numbers, and its sizes at a
scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

Numbers = dict[str, Any]
"""What stands for the names in braces of a move."""


@dataclass(frozen=True)
class Scale:
    """Sizes of caches, what they are given, and how long they are."""

    name: str
    kv_heads: int
    k_dim: int
    v_dim: int
    batch: int
    """Sequences."""
    layers: int
    sizes: tuple[int, ...]
    """Windows, pages, and bounds of other sizes: one walk after another has one of them."""
    rows: tuple[int, ...]
    """Rows that an operation is given."""
    length: int = 0
    """Rows that a cache has before the first move at least, and again after it was emptied."""
    dtype: str = "f16"

    def fields(self, *own: str) -> str:
        """Write the geometry of rows, and a kind's own fields."""
        rows = f"kv_heads={self.kv_heads} k_dim={self.k_dim} v_dim={self.v_dim} dtype={self.dtype}"
        return " ".join((rows, *own))

    def size(self, turn: int) -> int:
        """Give the size that the walk of a turn has."""
        return self.sizes[turn % len(self.sizes)]

    @property
    def at_once(self) -> int:
        """Give the rows of each of the many appends that make a cache long: fewer than a window or a page has."""
        return max(1, min(self.sizes) - 4)

    @property
    def room(self) -> int:
        """Give room for all rows of a few moves."""
        return self.length + 3 * max(self.rows) + 4


SMALL = Scale("small", 2, 8, 6, 2, 2, sizes=(3, 40, 2, 6), rows=(1, 2, 3, 5))
LATENT = Scale("latent", 1, 576, 512, 17, 2, sizes=(6, 17), rows=(1, 2, 3), dtype="f32")
MANY = Scale("many-heads-and-layers", 40, 24, 20, 1, 35, sizes=(17, 33), rows=(1, 2, 3), dtype="bf16")
BESIDE = Scale("several-sizes", 9, 130, 128, 4, 9, sizes=(33, 16), rows=(1, 3, 34))
LENGTH = Scale("length-and-width", 4, 65, 9, 3, 2, sizes=(130, 17), rows=(1, 3, 34), length=260, dtype="bf16")
LONG = Scale("long", 2, 5, 5, 2, 2, sizes=(1030, 65), rows=(1, 2, 5), length=4100)
PROMPTS = Scale("prompts", 2, 5, 5, 1, 2, sizes=(2060, 70), rows=(1, 130, 514))

SCALES = (SMALL, LATENT, MANY, BESIDE, LENGTH, LONG, PROMPTS)
"""Small caches, in which walks meet all pairs of moves. Each further scale lies beyond several boundaries at once.
Rows are as wide as DeepSeek's, or there are many heads and layers, or two sizes lie beyond a boundary each. Caches
are long, wide and narrow. Many rows come at once."""

WALKED = LATENT, MANY
"""The scales of real widths, and of many heads: what is done there needs no worked example of that size."""


@dataclass(frozen=True)
class Moves:
    """What a chapter gives. Operations that belong together are one move; names in braces stand for numbers."""

    of: Mapping[tuple[str, ...], tuple[str, ...]]
    """Moves by the kinds that have them."""
    numbers: Callable[[Any, Random], Numbers] | None = None
    """Draws the numbers for a session of the list model. A move whose number is missing is impossible now."""
    sized: Callable[[Scale, int], tuple[str, ...]] | None = None
    """Gives the fields of a kind at a scale, for the walk of a turn. Then gives the texts of what comes before the
    first move, and again after the cache was emptied. What is not claimed of them is left out."""

    def on(self, kind: str) -> tuple[str, ...]:
        """Give the moves on a kind."""
        return tuple(text for kinds, texts in self.of.items() if kind in kinds for text in texts)


def inside(length: int, random: Random) -> int:
    """Draw a place within a length: its end, one less, its begin, its middle."""
    return random.choice((length, max(0, length - 1), max(0, length - 1), max(0, length - 1), 0, length // 2))


def beyond(length: int, random: Random) -> int:
    """Draw a place beyond a length."""
    return random.choice((length + 1, length + 1, length + 2, -1, 99999))


def of_parcels(session: Any) -> Numbers:
    """Name the parcel that waits to be unpacked, if one was packed."""
    return {LATE: LATE} if LATE in session.parcels else {}


def of_parts(session: Any, random: Random) -> Numbers:
    """Draw a layer whose part comes late, and name the others. There are none unless a parcel waits."""
    count = len(session.caches["A"].sorts())
    if LATE not in session.parcels or count < 2:
        return {}
    late = random.randrange(count)
    return {"late": late, "rest": ",".join(str(number) for number in range(count) if number != late)}


LATE = "waiting"
"""The name of a parcel that is unpacked by a later move."""


def unseen(scale: Scale, one: str = "append {n}") -> str:
    """Append the rows of a long cache in many calls while nobody looks, or nothing where a scale has no length."""
    n = scale.at_once
    return f"run {-(-scale.length // n)} {{{one.format(n=n)}}}" if scale.length else ""
