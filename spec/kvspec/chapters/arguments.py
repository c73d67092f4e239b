"""The arguments of operations: their allowed values."""

from __future__ import annotations

from kvspec.chapters.record import Argument
from kvspec.geometry import DTYPES, LAYOUTS
from kvspec.geometry import TEXTS as IN_CONFIGS

FILLS = ("legible", "bits", "edges", "random", "even", "ramp")
"""What the rows of an append may hold; see `kvspec.rows`."""

QUERIES = ("random", "huge", "tiny", "zero")
"""What queries may hold; see `kvspec.rows`."""

PAIRINGS = ("norm", "neox")
"""Which elements of a row RoPE rotates together: neighbours, or one from each half."""

NAME = "^[a-z][a-z0-9]{0,7}$"
"""Pattern of the names of snapshots, rounds and captured work."""

CACHE_NAME = "^[A-Z]$"
"""Pattern of the names of caches; the cache that a trace begins with is A."""

LAYERS = "^[A-Z-]{1,8}$"
"""The caches of a round, layer by layer, `-` for a layer without one: `A-B`."""

TABLE = "^(-?[0-9]{1,6}(,-?[0-9]{1,6}){0,63}|empty)$"
"""A block table as an argument: page numbers in order."""

WORDS: dict[str, tuple[str, ...]] = {
    "dtype": tuple(DTYPES),
    "fill": FILLS,
    "layout": LAYOUTS,
    "queries": QUERIES,
    "pairing": PAIRINGS,
}
"""The allowed words of an argument, by what it holds."""

TEXTS = {"name": NAME, "layers": LAYERS, "table": TABLE, **IN_CONFIGS}
"""The patterns of text arguments, by what they hold."""


def allowed_words(argument: Argument) -> tuple[str, ...]:
    """Give the allowed words of an argument; none if it holds something else."""
    return argument.kinds or WORDS.get(argument.holds, ())
