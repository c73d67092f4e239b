"""What an argument of an operation may hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kvspec.geometry import DTYPES, KINDS, LAYOUTS
from kvspec.geometry import TEXTS as IN_CONFIGS

LARGEST = 1 << 31
"""Bound on the magnitude of every whole number in a trace that has no bound of its own."""

FAR = 1 << 40
"""Bound on the positions a copy may be told to write at: beyond what 32 bits hold."""

HUGE = 1 << 62
"""Bound on numbers of bytes."""

REQUIRED = object()

FILLS = ("legible", "bits", "edges", "random", "even", "ramp")
"""What the rows of an append may hold; see `kvspec.rows`."""

QUERIES = ("random", "huge", "tiny", "zero")
"""What queries may hold; see `kvspec.rows`."""

PAIRINGS = ("norm", "neox")
"""Which elements of a row RoPE turns together: neighbours, or those of its two halves."""

NAME = "^[a-z][a-z0-9]{0,7}$"
"""How snapshots, rounds of speculation and captured work may be called."""

CACHE_NAME = "^[A-Z]$"
"""How caches may be called; the cache that a trace begins with is A."""

LAYERS = "^[A-Z-]{1,8}$"
"""The caches of a round, layer by layer, `-` for a layer that has none: `A-B`."""

TABLE = "^(-?[0-9]{1,6}(,-?[0-9]{1,6}){0,63}|empty)$"
"""A block table handed in: page numbers in order."""

WORDS: dict[str, tuple[str, ...]] = {
    "dtype": tuple(DTYPES),
    "kind": KINDS,
    "fill": FILLS,
    "layout": LAYOUTS,
    "queries": QUERIES,
    "pairing": PAIRINGS,
}
"""The words an argument may be, by what it holds."""

TEXTS = {"name": NAME, "layers": LAYERS, "table": TABLE, **IN_CONFIGS}
"""The patterns of the texts an argument may be, by what it holds."""


@dataclass(frozen=True)
class Argument:
    """One argument of an operation: its name, what it holds, its bounds, and what stands for it when left out."""

    name: str
    holds: str = "number"
    low: int = -LARGEST
    high: int = LARGEST
    default: Any = REQUIRED

    @property
    def required(self) -> bool:
        """Whether the operation is malformed without it."""
        return self.default is REQUIRED

    def schema(self) -> dict[str, Any]:
        """This argument as JSON schema."""
        if self.holds in WORDS:
            return {"enum": list(WORDS[self.holds])}
        if self.holds in TEXTS:
            return {"type": "string", "pattern": TEXTS[self.holds]}
        if self.holds == "mask":
            return {"type": "array", "items": {"$ref": "#/$defs/mask_part"}}
        return {"type": "integer", "minimum": self.low, "maximum": self.high}
