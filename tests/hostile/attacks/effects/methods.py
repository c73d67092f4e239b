"""The methods that effects are on, and the observables in which they show."""

from __future__ import annotations

from collections.abc import Callable

from hostile.attacks.effects.arrays import QUERIED
from hostile.attacks.triggers.axes import AXES, axes
from hostile.attacks.wrapper import Where
from kvspec.registry import KINDS

SHOWN = ("sees", "history", "view", "state", "output", "rotated", "gathered", "batch", "saved", "host", "handle")
"""Where rows show."""

SIZES = ("offset", "retained", "buffered", "lengths", "sequences", "past", "free", "positions", "places", "drafted")
SIZES += ("transfer", "transfers", "sequence")
"""Where lengths show."""

TAKING = {w for w in AXES if w.method in ("append", "attend", "step", "feed", "copy", "replay", "draft")} | {
    Where("bucket", method) for method in ("prefill", "decode", "block", "encode")
}
TAKING |= {Where("keyed", method) for method in ("request", "compute", "answer")}
TAKING |= {Where("layers", "branch"), Where("ragged", "attend_block")}
"""Methods that take rows."""

GIVING = {w for w in AXES if w not in TAKING} | {w for w in AXES if w.method in QUERIED} - {
    Where("store", "attend_batch")
}
"""Methods that give rows or outputs."""

LENGTHENED = {w for w in AXES if w.method in ("append", "draft", "prefill", "encode")}

READ = {w for w in AXES if w.method in ("read", "read_sequence")}
"""Methods that take any number of rows, and that give rows: there may be one fewer."""

REFUSING = ("append", "rewind", "restore", "set_length", "rollback", "scatter", "fork", "truncate", "drop", "feed")
REFUSING += ("trim", "filter", "reorder", "cut", "copy", "load", "step", "prefill", "decode", "commit", "draft")
REFUSING += ("keep", "compute", "evict", "clear", "unpack", "send", "sent", "expect", "arrive", "lose")
REFUSING += ("branch", "settle", "attend_block")

SKIPPED = ("free", "reset", "zero", "rewind", "rollback", "load", "truncate", "reset_batch", "sync", "cut")
SKIPPED += ("unbind", "finish", "abort", "evict", "clear", "unpack", "lose", "restore", "scatter", "trim", "filter")
SKIPPED += ("keep", "reorder", "step", "draft", "alias", "encode", "rollback_sequence", "branch", "settle")

MASKS = {Where(kind, "mask") for kind in ("growing", "ring", "bounded", "sink", "ragged", "round", "layers")}

QUESTIONS = ("can_rewind", "can_append", "can_restore")
TOLD = {Where(kind, "lengths") for kind in ("growing", "ring", "bounded", "sink", "store", "layers")}
TOLD |= {Where(kind, "sequences") for kind in ("page", "ragged")} | {Where("bucket", "past")}
TOLD |= {Where(kind, q) for kind in ("growing", "ring", "bounded", "sink", "layers") for q in QUESTIONS}
TOLD |= {
    Where("keyed", "free_pages"),
    Where("keyed", "match"),
    Where("page", "free_pages"),
    Where("growing", "plan"),
    Where("store", "plan"),
    Where("page", "plan"),
}
TOLD |= {Where("growing", "held"), Where("sink", "positions"), Where("round", "offset")}
TOLD |= {Where("page", method) for method in ("send", "expect", "arrive", "transfers")}


def suiting(axis: str, methods: set[Where]) -> Callable[[Where], bool]:
    """Tell of a method whether it is one of these and its arrays have an axis."""
    return lambda where: where in methods and axis in axes(where)


def loses(where: Where) -> bool:
    """Tell whether a refusal can cost a cache its newest row."""
    return where.method in REFUSING and where.kind in KINDS and where.kind != "copy"


SPOILT = {Where("growing", m) for m in ("rewind", "restore", "snapshot", "unpack")} | {
    Where("store", m) for m in ("rollback", "set_length", "save", "scatter", "step")
}
"""Methods after which a kept row is another's."""
