"""The operations a trace may hold: one table that the trace parser, the notation, the schema and the wire read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kvspec.geometry import CACHES, DTYPES

LARGEST = 1 << 31
"""Bound on the magnitude of every whole number in a trace."""

REQUIRED = object()


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
        schemas: dict[str, dict[str, Any]] = {
            "number": {"type": "integer", "minimum": self.low, "maximum": self.high},
            "name": {"type": "string", "pattern": NAME},
            "dtype": {"enum": list(DTYPES)},
            "profile": {"enum": list(CACHES)},
            "fill": {"enum": list(FILLS)},
            "mask": {"type": "array", "items": {"$ref": "#/$defs/mask_part"}},
        }
        return schemas[self.holds]


FILLS = ("legible", "bits")
"""What the rows of an append may hold; see `kvspec.rows`."""

NAME = "^[a-z][a-z0-9]{0,7}$"
"""How snapshots may be called."""

CACHE_NAME = "^[A-Z]$"
"""How caches may be called; the cache that a trace begins with is A."""

_ROWS = (
    *(Argument(n, low=0, high=1 << 16, default=None) for n in ("values", "batch", "kv_heads", "k_dim", "v_dim")),
    Argument("dtype", "dtype", default=None),
    Argument("fill", "fill", default="legible"),
)
_CONFIG = (
    Argument("profile", "profile", default=None),
    *(Argument(n, high=1 << 16, default=None) for n in ("window", "step", "batch", "kv_heads", "k_dim", "v_dim")),
    Argument("dtype", "dtype", default=None),
)

OPERATIONS: dict[str, tuple[Argument, ...]] = {
    "open": _CONFIG,
    "append": (Argument("n", low=0, high=1 << 20), *_ROWS),
    "mask": (Argument("parts", "mask"),),
    "view": (),
    "ask": (Argument("to"),),
    "rewind": (Argument("to"),),
    "free": (),
    "scribble": (),
    "snapshot": (Argument("name", "name"), Argument("start", default=0)),
    "restore": (Argument("name", "name"), Argument("to")),
    "split": (
        Argument("name", "name"),
        Argument("at"),
        Argument("parent", "name"),
        Argument("child", "name"),
    ),
    "merge": (Argument("parent", "name"), Argument("child", "name"), Argument("name", "name")),
    "close": (Argument("name", "name"),),
}
"""Every operation with its arguments, required ones first."""

MAKES = {"snapshot": ("name",), "split": ("parent", "child"), "merge": ("name",)}
"""Operations that bind names of snapshots, and the arguments that hold those names."""

USES = {"restore": ("name",), "split": ("name",), "merge": ("parent", "child"), "close": ("name",)}
"""Operations that use names of snapshots, and the arguments that hold those names."""

Operation = dict[str, Any]
"""`{"op": name, argument: value, ...}`, and `"cache"` where it is not A."""


def cache_of(op: Operation) -> str:
    """The name of the cache an operation is for."""
    return str(op.get("cache", "A"))


def argument(op: Operation, name: str) -> Any:
    """The value of an argument, or its default."""
    if name in op:
        return op[name]
    return next(a.default for a in OPERATIONS[op["op"]] if a.name == name)
