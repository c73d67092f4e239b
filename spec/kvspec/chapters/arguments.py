"""The arguments of operations: their allowed values, and those that several operations share."""

from __future__ import annotations

from typing import Any

from kvspec.chapters.record import LARGEST, Argument
from kvspec.geometry import DTYPES, LAYOUTS
from kvspec.geometry import TEXTS as IN_CONFIGS

FAR = 1 << 40
"""Bound on the positions of copies: beyond 32 bits."""

HUGE = 1 << 62
"""Bound on numbers of bytes."""

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


def argument_schema(argument: Argument) -> dict[str, Any]:
    """Give the JSON schema of an argument."""
    if allowed := allowed_words(argument):
        return {"enum": list(allowed)}
    if argument.holds in TEXTS:
        return {"type": "string", "pattern": TEXTS[argument.holds]}
    if argument.holds == "mask":
        return {"type": "array", "items": {"$ref": "#/$defs/mask_part"}}
    return {"type": "integer", "minimum": argument.low, "maximum": argument.high}


def sizes(*names: str, low: int = -LARGEST) -> tuple[Argument, ...]:
    """Make size arguments that can be left out."""
    return tuple(Argument(n, low=low, high=1 << 16, default=None) for n in names)


def flag(name: str, needs: str = "") -> Argument:
    """0 or 1; 0 where it is left out."""
    return Argument(name, low=0, high=1, default=0, needs=needs)


N = Argument("n", low=0, high=1 << 20)
TO = Argument("to")
DTYPE = Argument("dtype", "dtype", default=None)
FILL = Argument("fill", "fill", default="legible")
MISFIT = sizes("values", "batch", "kv_heads", "k_dim", "v_dim", low=0)
"""Sizes of the rows, if they differ from the cache's."""
RESIDENT = flag("resident", needs="residency")
ROWS = (*MISFIT, DTYPE, FILL, RESIDENT)
GEOMETRY = (*sizes("layers", "max_len", "kv_heads", "k_dim", "v_dim"), DTYPE)
LAYER = Argument("layer", default=None)
SEQUENCE = Argument("sequence", default=None)
OF = Argument("sequence")
ASKED = (
    Argument("heads", low=0, high=64, default=None),
    Argument("splits", low=-LARGEST, high=1 << 10, default=1),
    Argument("queries", "queries", default="random"),
    flag("into"),
    *sizes("q_dim", "q_rows", low=0),
)
"""Options of queries: their heads, if not one for each kv head; the number of splits of their tiles; what they
hold; whether the output array is given; and sizes that are wrong on purpose."""
WRONG = (
    *sizes("q_batch", "out_rows", "out_dim", low=0),
    Argument("q_dtype", "dtype", default=None),
    Argument("out_dtype", "dtype", default=None),
    flag("out_readonly"),
)
"""Sizes and dtypes of queries and of a given output that are wrong on purpose; whether that output, if on the host,
is read-only."""
TURNED = (
    Argument("rope", "pairing", default=None, needs="rope"),
    Argument("base", low=1, high=1 << 30, default=10000),
)
"""Whether RoPE rotates queries and keys first, at their positions."""
RANDOM = Argument("fill", "fill", default="random")
NAMED = Argument("name", "name")
LAYERED = (Argument("layers", low=1, high=8, default=None), *MISFIT, DTYPE, RANDOM)
"""Rows of every layer, and sizes that differ from the cache's."""
