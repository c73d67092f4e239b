"""The operations a trace may hold: one table that the trace parser, the notation, the schema and the wire read."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from kvspec.operations.arguments import FAR, HUGE, LARGEST, Argument


def _sizes(*names: str, low: int = -LARGEST) -> tuple[Argument, ...]:
    return tuple(Argument(n, low=low, high=1 << 16, default=None) for n in names)


def _flag(name: str) -> Argument:
    return Argument(name, low=0, high=1, default=0)


_N = Argument("n", low=0, high=1 << 20)
_DTYPE = Argument("dtype", "dtype", default=None)
_FILL = Argument("fill", "fill", default="legible")
_MISFIT = _sizes("values", "batch", "kv_heads", "k_dim", "v_dim", low=0)
"""Sizes of the rows handed in, where they are not the cache's."""
_RESIDENT = _flag("resident")
_ROWS = (*_MISFIT, _DTYPE, _FILL, _RESIDENT)
_GEOMETRY = (*_sizes("layers", "max_len", "kv_heads", "k_dim", "v_dim"), _DTYPE)
_LAYER = Argument("layer", default=None)
_SEQUENCE = Argument("sequence", default=None)
_OF = Argument("sequence")
_ASKED = (
    Argument("heads", low=0, high=64, default=None),
    Argument("splits", low=-LARGEST, high=1 << 10, default=1),
    Argument("queries", "queries", default="random"),
    _flag("into"),
    *_sizes("q_dim", "q_rows", low=0),
)
"""What goes with queries: their heads, if not one for each kv head; into how many splits their tiles are parted;
what they hold; whether the output is given; and their sizes where they are not right."""
_WRONG = (
    *_sizes("q_batch", "out_rows", "out_dim", low=0),
    Argument("q_dtype", "dtype", default=None),
    Argument("out_dtype", "dtype", default=None),
    _flag("out_readonly"),
)
"""Sizes and dtypes of queries and of a given output, where they are wrong on purpose; whether that output, if it is
on the host, can only be read."""
_TURNED = (Argument("rope", "pairing", default=None), Argument("base", low=1, high=1 << 30, default=10000))
"""Whether queries and keys are turned by RoPE first, at their positions."""
_RANDOM = Argument("fill", "fill", default="random")
_NAMED = Argument("name", "name")

CACHE: dict[str, tuple[Argument, ...]] = {
    "open": (
        Argument("kind", "kind", default=None),
        *_sizes("window", "step", "batch", "kv_heads", "k_dim", "v_dim", "capacity", "layers", "max_len"),
        *_sizes("page_size", "pages", "debug"),
        Argument("bounds", "bounds", default=None),
        _DTYPE,
        Argument("layout", "layout", default=None),
    ),
    "append": (_N, *_ROWS, _LAYER, _SEQUENCE),
    "view": (),
    "ask": (Argument("to"),),
    "rewind": (Argument("to"),),
    "free": (),
    "scribble": (),
}
"""On caches: growing and ring; `open`, `append` and `scribble` on the other kinds as well. `sequence` is one of a
paged cache."""

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

ATTENTION: dict[str, tuple[Argument, ...]] = {
    "attend": (
        *(_N, *_ASKED, *_WRONG, *_TURNED),
        *(*_MISFIT, _DTYPE, _RANDOM, _RESIDENT),
        _LAYER,
        _SEQUENCE,
        Argument("through", "mask", default=("causal",)),
    ),
    "attendbatch": (Argument("layer"), *_ASKED, *_WRONG, _RESIDENT),
    "captureattend": (_NAMED, Argument("layer"), *_ASKED[:2]),
    "replayattend": (_NAMED, _ASKED[0], *_ASKED[2:3], *_ASKED[4:5], *_ROWS[:-2], _RANDOM, _RESIDENT),
}
"""`attend` appends n rows and has n queries attend, of a store's `layer` or a paged cache's `sequence` where it
says so; `attendbatch` has a query of each sequence of a batch attend to what a layer holds of it; `captureattend`
captures an attend of one row on a store's layer."""

PAGE: dict[str, tuple[Argument, ...]] = {
    "admit": (),
    "fork": (_OF, Argument("n")),
    "truncate": (_OF, Argument("to")),
    "drop": (_OF,),
    "gather": (Argument("table", "table"), Argument("n", high=1 << 20)),
    "peek": (Argument("page"),),
}
"""On paged caches: a new sequence, one that shares the first n rows of another, one made shorter, one given up; n
rows read through a block table that is handed in; a page as it lies in the pool."""

_LAYERED = (Argument("layers", low=1, high=8, default=None), *_MISFIT, _DTYPE, _RANDOM)
"""Rows of every layer, and sizes of them that are not the cache's."""
_PAST = Argument("past", default=None)

BUCKET: dict[str, tuple[Argument, ...]] = {
    "prefill": (_N, *_LAYERED),
    "bind": (_flag("refresh"),),
    "decode": (*_ASKED, *_WRONG, *_LAYERED, _RESIDENT, _flag("refresh"), _PAST),
    "block": (_N, *_ASKED, *_WRONG, *_LAYERED, _RESIDENT, _PAST),
    "unbind": (),
    "sync": (),
    "cut": (Argument("to"),),
    "encode": (_N, *_LAYERED, _RESIDENT),
    "cross": (_N, *_ASKED, *_WRONG, _RESIDENT),
}
"""On bucketed caches: the host's rows become n new ones; handles installed where they have to be; a step, and a
block of n rows that commits nothing; the bindings forgotten; the device's rows to the host; past made shorter; the
rows of an encoder for cross-attention; n queries over these. `past` is the length that the caller counts on."""

ROPE: dict[str, tuple[Argument, ...]] = {
    "rotate": (
        _N,
        Argument("at", low=-FAR, high=FAR),
        Argument("pairing", "pairing", default="neox"),
        Argument("base", default=10000),
        Argument("dims", default=None),
        Argument("by", low=-FAR, high=FAR, default=None),
        Argument("stride", low=-FAR, high=FAR, default=1),
        *_sizes("positions", "batch", "kv_heads", "k_dim", low=0),
        _flag("halved"),
        _DTYPE,
        _RANDOM,
        _RESIDENT,
    ),
}
"""Turns n key rows, the first at position `at`, each further one `stride` on; then all of them again `by` so many
positions; of each row the first `dims` elements. `positions` is how many positions are handed in, if not n;
`halved` rows have their elements of even number first, then those of odd number; the sizes are those of the rows,
where they are not the cache's."""

OPERATIONS: dict[str, tuple[Argument, ...]] = (
    CACHE | MASK | SNAPSHOT | DRAFT | COPY | STORE | BATCH | MEM | ATTENTION | PAGE | BUCKET | ROPE
)
"""Every operation with its arguments, required ones first."""

CHAPTER_OF: dict[str, str] = {
    op: chapter
    for chapter, ops in (
        ("mask", MASK),
        ("snapshot", SNAPSHOT),
        ("draft", DRAFT),
        ("copy", COPY),
        ("store", STORE),
        ("batch", BATCH),
        ("mem", MEM),
        ("attention", ATTENTION),
        ("page", PAGE),
        ("bucket", BUCKET),
        ("rope", ROPE),
    )
    for op in ops
}
"""The chapter an operation belongs to, where it is not one of every cache."""

TAKES_ROWS = (
    *("append", "draft", "copy", "step", "replay", "attend", "replayattend", "rotate"),
    *("prefill", "decode", "block", "encode"),
)
"""Operations that rows are handed to."""

TAKES_QUERIES = ("attend", "attendbatch", "replayattend", "decode", "block", "cross")
"""Operations that queries are handed to, in f32; each gives an output."""

MAKES = {
    "snapshot": ("name",),
    "split": ("parent", "child"),
    "merge": ("name",),
    "speculate": ("name",),
    "save": ("name",),
    "capture": ("name",),
    "captureattend": ("name",),
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
    "replayattend": ("name",),
    "mask": ("round",),
}
"""Operations that use names, and the arguments that hold those names."""

NAMES: dict[str, str] = {
    **dict.fromkeys(SNAPSHOT, "snapshot"),
    **dict.fromkeys((*DRAFT, "mask"), "round"),
    **dict.fromkeys(("save", "load"), "saved store"),
    **dict.fromkeys(("capture", "replay"), "captured work"),
    **dict.fromkeys(("captureattend", "replayattend"), "captured attention"),
}
"""What the names of an operation name."""

Operation = dict[str, Any]
"""`{"op": name, argument: value, ...}`, and `"cache"` where it is not A."""


def unknown(name: Any) -> str:
    """What to say of an operation that there is not: those with names like it, if any."""
    alike = get_close_matches(str(name), OPERATIONS, 3)
    hint = f"did you mean {', '.join(alike)}?" if alike else f"there are append and {len(OPERATIONS) - 1} more"
    return f"unknown operation {name!r:.60}; {hint}"


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


def chapters_of(op: Operation) -> set[str]:
    """The chapters an operation needs, beside the one its cache was opened with."""
    found = {CHAPTER_OF[op["op"]]} if op["op"] in CHAPTER_OF else set[str]()
    if op["op"] == "rollback" and op.get("sequence") is not None:
        found.add("batch")
    if op.get("rope") is not None:
        found.add("rope")
    if op["op"] == "attendbatch":
        found.add("batch")
    if op.get("round") is not None:
        found.add("draft")
    return found | ({"residency"} if op.get("resident") else set[str]())
