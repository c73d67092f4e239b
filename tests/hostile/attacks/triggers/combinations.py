"""By what other chapters did to the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from hostile.attacks.triggers.sizes import sequences, views
from hostile.attacks.triggers.trigger import Trigger
from hostile.attacks.wrapper import Event, Where
from kvspec.contract.attention import Rope


def done(event: Event, *names: str) -> bool:
    """Tell whether all these were done to this cache."""
    return set(names) <= set(event.life.done)


TURNING = ("adapter", "growing", "ring", "page", "store")
"""Kinds with a method that turns rows."""

COMBINED: dict[str, tuple[tuple[str, ...], Callable[[Event], bool]]] = {
    "a snapshot is alive": (("growing", "ring"), lambda e: e.life.calls["snapshot"] > e.life.calls["restore"]),
    "drafts were kept": (("growing", "ring"), lambda e: done(e, "commit")),
    "drafts were dropped": (("growing", "ring"), lambda e: done(e, "abandon")),
    "queries were answered": (("growing", "ring", "store", "page"), lambda e: done(e, "attend")),
    "restored and rewound": (("growing", "ring"), lambda e: done(e, "restore", "rewind")),
    "past the window": (("ring", "sink", "ragged"), lambda e: 0 < (e.config.window or 0) < e.length),
    "a batch is there": (("store",), lambda e: sequences(e) > 0),
    "something is captured": (("store", "work"), lambda e: done(e, "capture")),
    "loaded after a batch": (("store",), lambda e: done(e, "batch", "load")),
    "forked and truncated": (("page",), lambda e: done(e, "fork", "truncate")),
    "dropped and forked": (("page",), lambda e: done(e, "drop", "fork")),
    "repeated and trimmed": (("ragged",), lambda e: done(e, "repeat", "trim")),
    "extended": (("ragged",), lambda e: done(e, "extend")),
    "synced and cut": (("bucket",), lambda e: done(e, "sync", "cut")),
    "encoded": (("bucket",), lambda e: done(e, "encode")),
    "rotated in attention": (("growing", "ring", "page", "store"), lambda e: bool(getattr(how(e), "rope", None))),
    "several splits": (("growing", "ring", "page", "store"), lambda e: getattr(how(e), "splits", 1) > 1),
    "a softcap": (("growing", "ring", "page", "store"), lambda e: bool(getattr(how(e), "softcap", 0))),
    "learned sinks": (("growing", "ring", "page", "store"), lambda e: getattr(how(e), "sinks", None) is not None),
    "past a window": (("layers",), lambda e: e.length > min((sizes[-1] for sizes in views(e)), default=e.length)),
    "at the end of a chunk": (("layers",), lambda e: e.length > 0 and any(e.length % n == 0 for n in chunks(e))),
    "layers of unlike views": (("layers",), lambda e: len(set((e.config.of or "").split(","))) > 1),
    "a layer shares": (("layers",), lambda e: "share" in (e.config.of or "")),
    "a layer is a state": (("layers",), lambda e: "state" in (e.config.of or "")),
    "a layer is a convolution": (("layers",), lambda e: "conv" in (e.config.of or "")),
    "drafts on several ways": (("layers",), lambda e: e.where.method == "branch" and branches(e)),
    "two calls of drafts": (("layers",), lambda e: e.life.done[-2:] == ["branch", "branch"]),
    "a way was settled": (("layers",), lambda e: done(e, "settle")),
    "a sequence without rows": (("ragged",), lambda e: 0 in lengths_given(e)),
    "a block of unequal lengths": (("ragged",), lambda e: len({*lengths_given(e)}) > 1),
    "a full cache": (("bounded",), lambda e: e.length == e.config.max_len),
    "the ends of a ramp are exact": (TURNING, lambda e: getattr(turning(e).scaling, "exact", False)),
    "a row has three positions": (("adapter",), lambda e: turning(e).sections is not None),
}


def branches(event: Event) -> bool:
    """Tell whether a draft that is handed in hangs on another than the one before it."""
    on = list(event.given[2]) if len(event.given) > 2 else []
    return any(later != earlier + 1 for earlier, later in pairwise(on))


def lengths_given(event: Event) -> list[int]:
    """The rows that each sequence has of a block; none where no block is given."""
    lengths = event.given[-1] if event.where.method in ("feed", "attend_block") else []
    return list(lengths)


def chunks(event: Event) -> list[int]:
    """The sizes of the chunks of a cache of layers."""
    words = (word.split(":") for word in (event.config.of or "").split(","))
    return [int(size) for name, *sizes in words if name == "chunk" for size in sizes]


def turning(event: Event) -> Rope:
    """How the rows of a call are turned; a call that turns none has a Rope without options."""
    found = event.given[2] if event.where.method == "rotate" else getattr(how(event), "rope", None)
    return found or Rope()


def how(event: Event) -> Any:
    """The options of queries."""
    return event.given[3] if event.where.method == "attend" and len(event.given) > 3 else None


ATTENDED = ("rotated in attention", "several splits", "a softcap", "learned sinks")

TURNED = ("the ends of a ramp are exact", "a row has three positions")


BLOCKS = ("a sequence without rows", "a block of unequal lengths")


def asked_with_options(name: str, where: Where) -> bool:
    """Tell whether a method has the options that a combination is about; those about others have any."""
    methods = {**dict.fromkeys(ATTENDED, ("attend",)), **dict.fromkeys(TURNED, ("attend", "rotate"))}
    methods |= {**dict.fromkeys(BLOCKS, ("feed", "attend_block")), "drafts on several ways": ("branch",)}
    return where.method in methods.get(name, (where.method,))


def combinations() -> Iterator[Trigger]:
    """By what other chapters did to the cache."""
    for name, (kinds, when) in COMBINED.items():
        yield Trigger(
            name,
            "combination",
            when,
            lambda w, k=kinds, n=name: w.kind in k and asked_with_options(n, w),
        )
