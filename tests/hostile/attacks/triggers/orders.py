"""By what was done right before."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from hostile.attacks.triggers.axes import axes
from hostile.attacks.triggers.sizes import rows_given
from hostile.attacks.triggers.trigger import Trigger
from hostile.attacks.wrapper import Event, Where

ORDERS: dict[str, tuple[str, ...]] = {
    "growing": ("rewind", "free", "restore", "snapshot", "attend", "commit", "abandon"),
    "ring": ("rewind", "free", "restore", "attend", "commit"),
    "bounded": ("rewind", "free"),
    "sink": ("rewind", "free", "keep"),
    "store": ("rollback", "reset", "zero", "load", "save", "set_length", "scatter", "step", "batch"),
    "page": ("fork", "truncate", "drop", "admit", "send", "expect"),
    "ragged": ("trim", "reorder", "filter", "repeat", "extend", "attend_block"),
    "bucket": ("cut", "sync", "unbind", "bind", "encode", "block", "prefill"),
    "copy": ("alias",),
    "layers": ("rewind", "free", "unpack", "branch", "settle"),
    "keyed": ("request", "finish", "abort", "accept", "evict", "clear"),
    "round": ("draft",),
}
"""Operations after which another may go wrong."""


def orders() -> Iterator[Trigger]:
    """Right after another operation, after a refusal, or after two of its own."""
    for name in dict.fromkeys(chain.from_iterable(ORDERS.values())):
        yield Trigger(
            f"right after {name}",
            "order",
            lambda e, n=name: e.previous == n,
            lambda w, n=name: n in ORDERS.get(w.kind, ()),
        )
    yield Trigger("after a refusal", "order", lambda e: e.previous.endswith("!"), lambda w: w.kind in ORDERS)
    yield Trigger(
        "the third in a row",
        "order",
        lambda e: e.life.done[-2:] == [e.where.method] * 2,
        lambda w: w.kind in ORDERS,
    )
    yield Trigger("one row after several", "order", lambda e: rows_given(e) == 1 < last_given(e), decodes)
    yield Trigger("several rows after one", "order", lambda e: rows_given(e) > 1 == last_given(e), decodes)


def decodes(where: Where) -> bool:
    """Tell whether a method takes one row or several."""
    return "n" in axes(where) and where.method in ("append", "attend", "draft", "branch", "attend_block")


def last_given(event: Event) -> int:
    """The rows of the operation before."""
    return int(event.life.newest[-1].shape[-2]) if event.life.newest else 0
