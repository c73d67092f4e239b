"""The operations a trace may hold: one table that the trace parser, the notation, the schema and the wire read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kvspec.geometry import DTYPES, KINDS, LAYOUTS

LARGEST = 1 << 31
"""Bound on the magnitude of every whole number in a trace that has no bound of its own."""

FAR = 1 << 40
"""Bound on the positions a copy may be told to write at: beyond what 32 bits hold."""

HUGE = 1 << 62
"""Bound on numbers of bytes."""

REQUIRED = object()

FILLS = ("legible", "bits", "edges")
"""What the rows of an append may hold; see `kvspec.rows`."""

NAME = "^[a-z][a-z0-9]{0,7}$"
"""How snapshots, rounds of speculation and captured work may be called."""

CACHE_NAME = "^[A-Z]$"
"""How caches may be called; the cache that a trace begins with is A."""

LAYERS = "^[A-Z-]{1,8}$"
"""The caches of a round, layer by layer, `-` for a layer that has none: `A-B`."""

WORDS: dict[str, tuple[str, ...]] = {
    "dtype": tuple(DTYPES),
    "profile": KINDS,
    "fill": FILLS,
    "layout": LAYOUTS,
}
"""The words an argument may be, by what it holds."""

TEXTS = {"name": NAME, "layers": LAYERS}
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


def _sizes(*names: str, low: int = -LARGEST) -> tuple[Argument, ...]:
    return tuple(Argument(n, low=low, high=1 << 16, default=None) for n in names)


def _flag(name: str) -> Argument:
    return Argument(name, low=0, high=1, default=0)


_N = Argument("n", low=0, high=1 << 20)
_DTYPE = Argument("dtype", "dtype", default=None)
_FILL = Argument("fill", "fill", default="legible")
_MISFIT = _sizes("values", "batch", "kv_heads", "k_dim", "v_dim", low=0)
"""Sizes of the rows handed in, where they are not the cache's."""
_ROWS = (*_MISFIT, _DTYPE, _FILL, _flag("resident"))
_GEOMETRY = (*_sizes("layers", "max_len", "kv_heads", "k_dim", "v_dim"), _DTYPE)
_LAYER = Argument("layer", default=None)
_SEQUENCE = Argument("sequence", default=None)
_NAMED = Argument("name", "name")

CACHE: dict[str, tuple[Argument, ...]] = {
    "open": (
        Argument("profile", "profile", default=None),
        *_sizes("window", "step", "batch", "kv_heads", "k_dim", "v_dim", "capacity", "layers", "max_len"),
        _DTYPE,
        Argument("layout", "layout", default=None),
    ),
    "append": (_N, *_ROWS, _LAYER),
    "view": (),
    "ask": (Argument("to"),),
    "rewind": (Argument("to"),),
    "free": (),
    "scribble": (),
}
"""On caches: growing and ring; `open`, `append` and `scribble` on stores and buffers as well."""

MASK: dict[str, tuple[Argument, ...]] = {
    "mask": (Argument("parts", "mask"), Argument("round", "name", default=None)),
}

SNAPSHOT: dict[str, tuple[Argument, ...]] = {
    "snapshot": (_NAMED, Argument("start", default=0)),
    "restore": (_NAMED, Argument("to")),
    "split": (_NAMED, Argument("at"), Argument("parent", "name"), Argument("child", "name")),
    "merge": (Argument("parent", "name"), Argument("child", "name"), _NAMED),
    "close": (_NAMED,),
}

DRAFT: dict[str, tuple[Argument, ...]] = {
    "speculate": (_NAMED, Argument("layers", "layers"), _flag("isolated")),
    "draft": (_NAMED, _N, *_ROWS),
    "commit": (_NAMED, Argument("n")),
    "abandon": (_NAMED,),
}

COPY: dict[str, tuple[Argument, ...]] = {
    "copy": (_N, Argument("at", high=FAR), _flag("sliding"), *_sizes("rows", low=0), *_ROWS),
    "alias": (_N, Argument("at", high=FAR), Argument("source", low=0), _flag("sliding")),
}
"""`rows` is how many rows the source really has, if not n; an alias's source is the buffer's own slots from
`source` on."""

STORE: dict[str, tuple[Argument, ...]] = {
    "init": _GEOMETRY,
    "reset": (),
    "zero": (),
    "rollback": (Argument("to"), _SEQUENCE),
    "setlength": (Argument("layer"), Argument("n")),
    "save": (_NAMED,),
    "load": (_NAMED, *_sizes("values", "layers", "kv_heads", "k_dim", "v_dim", low=0), _DTYPE),
    "fingerprint": (Argument("position"),),
}
"""`load` hands a saved store back; what it says otherwise is how the arrays handed back were changed before."""

BATCH: dict[str, tuple[Argument, ...]] = {
    "batch": (Argument("m"), Argument("most", default=None)),
    "scatter": (Argument("sequence"), Argument("n"), _LAYER),
    "step": _ROWS,
    "resetbatch": (),
    "freebatch": (),
    "capture": (_NAMED,),
    "replay": (_NAMED, _FILL),
}
"""`step` appends one row to every sequence of the batch in every layer; `capture` captures that."""

MEM: dict[str, tuple[Argument, ...]] = {
    "plan": (Argument("n", low=0, high=1 << 20),),
    "fit": (
        Argument("free", low=0, high=HUGE),
        Argument("reserve", low=0, high=HUGE, default=None),
        Argument("most", default=None),
        *_sizes("layers", "max_len", "kv_heads", "k_dim", "v_dim", low=0),
        _DTYPE,
    ),
}

OPERATIONS: dict[str, tuple[Argument, ...]] = CACHE | MASK | SNAPSHOT | DRAFT | COPY | STORE | BATCH | MEM
"""Every operation with its arguments, required ones first."""

PROFILE_OF: dict[str, str] = {
    op: profile
    for profile, ops in (
        ("mask", MASK),
        ("snapshot", SNAPSHOT),
        ("draft", DRAFT),
        ("copy", COPY),
        ("store", STORE),
        ("batch", BATCH),
        ("mem", MEM),
    )
    for op in ops
}
"""The profile an operation belongs to, where it is not one of every cache."""

TAKES_ROWS = ("append", "draft", "copy", "step", "replay")
"""Operations that rows are handed to."""

MAKES = {
    "snapshot": ("name",),
    "split": ("parent", "child"),
    "merge": ("name",),
    "speculate": ("name",),
    "save": ("name",),
    "capture": ("name",),
}
"""Operations that bind names, and the arguments that hold those names."""

USES = {
    "restore": ("name",),
    "split": ("name",),
    "merge": ("parent", "child"),
    "close": ("name",),
    "draft": ("name",),
    "commit": ("name",),
    "abandon": ("name",),
    "load": ("name",),
    "replay": ("name",),
    "mask": ("round",),
}
"""Operations that use names, and the arguments that hold those names."""

NAMES: dict[str, str] = {
    **dict.fromkeys(SNAPSHOT, "snapshot"),
    **dict.fromkeys((*DRAFT, "mask"), "round"),
    **dict.fromkeys(("save", "load"), "saved store"),
    **dict.fromkeys(("capture", "replay"), "captured work"),
}
"""What the names of an operation name."""

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


def names_used(op: Operation) -> list[str]:
    """The names an operation uses, those that it leaves out apart."""
    return [op[a] for a in USES.get(op["op"], ()) if op.get(a) is not None]


def profiles_of(op: Operation) -> set[str]:
    """The profiles an operation needs, beside the one its cache was opened with."""
    found = {PROFILE_OF[op["op"]]} if op["op"] in PROFILE_OF else set[str]()
    if op.get("sequence") is not None:
        found.add("batch")
    if op.get("round") is not None:
        found.add("draft")
    return found | ({"residency"} if op.get("resident") else set[str]())
