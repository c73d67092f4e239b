"""The arguments of operations: what each may hold, and those that several operations have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kvspec.geometry import DTYPES, LAYOUTS
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
    needs: str = ""
    """The chapter that it needs where it is given and is not the default."""
    kinds: tuple[str, ...] = ()
    """The words it may be where it holds a kind of cache."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words it may be; none where it holds something else."""
        return self.kinds or WORDS.get(self.holds, ())

    @property
    def required(self) -> bool:
        """Whether the operation is malformed without it."""
        return self.default is REQUIRED

    def schema(self) -> dict[str, Any]:
        """This argument as JSON schema."""
        if self.words:
            return {"enum": list(self.words)}
        if self.holds in TEXTS:
            return {"type": "string", "pattern": TEXTS[self.holds]}
        if self.holds == "mask":
            return {"type": "array", "items": {"$ref": "#/$defs/mask_part"}}
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


def sizes(*names: str, low: int = -LARGEST) -> tuple[Argument, ...]:
    """Sizes that can be left out."""
    return tuple(Argument(n, low=low, high=1 << 16, default=None) for n in names)


def flag(name: str, needs: str = "") -> Argument:
    """0 or 1; 0 where it is left out."""
    return Argument(name, low=0, high=1, default=0, needs=needs)


N = Argument("n", low=0, high=1 << 20)
TO = Argument("to")
DTYPE = Argument("dtype", "dtype", default=None)
FILL = Argument("fill", "fill", default="legible")
MISFIT = sizes("values", "batch", "kv_heads", "k_dim", "v_dim", low=0)
"""Sizes of the rows handed in, where they are not the cache's."""
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
"""What goes with queries: their heads, if not one for each kv head; into how many splits their tiles are parted;
what they hold; whether the output is given; and their sizes where they are not right."""
WRONG = (
    *sizes("q_batch", "out_rows", "out_dim", low=0),
    Argument("q_dtype", "dtype", default=None),
    Argument("out_dtype", "dtype", default=None),
    flag("out_readonly"),
)
"""Sizes and dtypes of queries and of a given output, where they are wrong on purpose; whether that output, if it is
on the host, can only be read."""
TURNED = (
    Argument("rope", "pairing", default=None, needs="rope"),
    Argument("base", low=1, high=1 << 30, default=10000),
)
"""Whether queries and keys are turned by RoPE first, at their positions."""
RANDOM = Argument("fill", "fill", default="random")
NAMED = Argument("name", "name")
LAYERED = (Argument("layers", low=1, high=8, default=None), *MISFIT, DTYPE, RANDOM)
"""Rows of every layer, and sizes of them that are not the cache's."""
