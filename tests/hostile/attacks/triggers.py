"""When an attack strikes: sizes, two at once, places, orders, contents, counts, observations, combinations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from hostile.attacks.wrapper import Event, Where
from kvspec.contract.attention import Rope
from kvspec.geometry import Array
from kvspec.registry import KINDS, fields_of


class Place(NamedTuple):
    """Where in its arrays an effect happens: an axis by its letter, and an index; elements from an index on."""

    axis: str
    index: int


class Trigger(NamedTuple):
    """A condition on a call. `suits` tells on which methods it can be met at all."""

    id: str
    sort: str
    when: Callable[[Event], bool]
    suits: Callable[[Where], bool] = lambda where: True
    place: Place | None = None


def rows_given(event: Event) -> int:
    """How many rows an operation is given; 0 for one that takes none."""
    *_, last = event.arrays or [np.zeros((0, 0))]
    return int(last.shape[0] if event.where.kind == "copy" else last.shape[-2])


def sequences(event: Event) -> int:
    """How many sequences there are in a pool, a ragged block, or a store's batch."""
    told = getattr(event.inner, "sequences", None)
    return len(told() or ()) if callable(told) else 0


SIZED = ("kv_heads", "k_dim", "v_dim")
"""Sizes of every kind."""

OF_BATCHES = ("growing", "ring", "bounded", "sink", "bucket", "ragged")
WRITES = ("append", "attend", "feed", "copy", "prefill", "decode", "block", "encode", "step", "draft", "replay")
"""Methods that take rows."""


def views(event: Event) -> list[list[int]]:
    """The sizes in the views of the layers of a cache; none of layers that see everything."""
    words = [word.split(":") for word in (event.config.of or "").split(",")]
    return [[int(size) for size in sizes] for name, *sizes in words if sizes and name != "share"]


def widest(event: Event) -> int:
    """The largest size in the views of the layers."""
    return max(chain.from_iterable(views(event)), default=0)


MEASURES: dict[str, Callable[[Event], int]] = {
    "n": rows_given,
    "length": lambda e: e.length,
    "m": sequences,
    "view": widest,
    "token": lambda e: e.config.kv_heads * e.config.k_dim,
}
"""Sizes that are no field of a config: rows given, rows held, sequences there are, elements of a token's keys."""


def measured(event: Event, size: str) -> int:
    """A size of a call, or of its cache; an adapter's own method has no cache, only rows."""
    if event.where.kind == "adapter":
        shape = dict(zip(("batch", "kv_heads", "n", "k_dim"), event.arrays[0].shape, strict=True))
        return int(shape.get(size, 0))
    return MEASURES[size](event) if size in MEASURES else getattr(event.config, size) or 0


def has(where: Where, size: str) -> bool:
    """Tell whether a method can meet a size."""
    kind = where.kind
    if kind == "adapter":
        return size in ("batch", "kv_heads", "n", "k_dim") and where.method == "rotate"
    if size == "n":
        return where.method in WRITES and where.method not in ("step", "replay", "decode")
    if size == "length":
        return kind in ("growing", "ring", "bounded", "sink", "store", "page", "bucket", "layers")
    if size == "view":
        return kind == "layers"
    if size == "m":
        return kind in ("page", "ragged") or where.method in OF_BATCH
    if size == "batch":
        return kind in OF_BATCHES
    if size == "token":
        return kind in KINDS
    return size in SIZED or (kind in KINDS and size in fields_of(kind)) or (kind in STORED and size in STORED[kind])


OF_BATCH = ("step", "scatter", "rollback_sequence", "reset_batch", "attend_batch", "replay")
STORED = {"round": ("window",), "work": ("layers", "max_len")}


def sizes() -> Iterator[Trigger]:
    """From a size on."""
    for size, starts in FROM.items():
        for start in starts:
            yield from_(start, size)


def from_(start: int, size: str) -> Trigger:
    """From this size on."""
    return Trigger(f"{size} from {start}", "size", lambda e: measured(e, size) >= start, lambda w: has(w, size))


FROM: dict[str, tuple[int, ...]] = {
    "kv_heads": (5, 9, 17, 33, 40, 64),
    "k_dim": (17, 63, 65, 127, 129, 257, 512),
    "v_dim": (33, 128, 256),
    "batch": (4, 9, 17, 33),
    "layers": (5, 9, 33, 60),
    "window": (33, 129, 1025, 2048),
    "max_len": (65, 1025, 4097),
    "page_size": (17, 65, 128),
    "pages": (65, 1025),
    "capacity": (129, 2049),
    "n": (17, 31, 65, 129, 255, 513, 2049),
    "length": (33, 127, 257, 1025, 4097),
    "m": (5, 9, 17, 32),
    "view": (9, 64, 129),
    "token": (1024, 4096),
}

BOTH: tuple[tuple[tuple[str, int], tuple[str, int]], ...] = (
    (("k_dim", 64), ("kv_heads", 5)),
    (("v_dim", 128), ("kv_heads", 8)),
    (("batch", 4), ("kv_heads", 4)),
    (("batch", 3), ("n", 17)),
    (("batch", 3), ("window", 129)),
    (("window", 17), ("k_dim", 64)),
    (("n", 33), ("kv_heads", 4)),
    (("length", 257), ("k_dim", 64)),
    (("layers", 9), ("k_dim", 64)),
    (("max_len", 257), ("kv_heads", 4)),
    (("page_size", 16), ("kv_heads", 4)),
    (("page_size", 16), ("k_dim", 64)),
    (("capacity", 129), ("kv_heads", 4)),
    (("m", 5), ("k_dim", 64)),
    (("m", 3), ("kv_heads", 5)),
    (("kv_heads", 32), ("k_dim", 64)),
    (("kv_heads", 17), ("batch", 2)),
    (("n", 2), ("token", 2048)),
    (("layers", 33), ("kv_heads", 4)),
    (("length", 129), ("kv_heads", 4)),
    (("page_size", 16), ("v_dim", 128)),
)


def two_sizes() -> Iterator[Trigger]:
    """From two sizes on, at once; and a dtype from a width on."""
    for one, other in BOTH:

        def both(event: Event, pair: Any = (one, other)) -> bool:
            return all(measured(event, size) >= start for size, start in pair)

        def suits(where: Where, pair: Any = (one, other)) -> bool:
            return all(has(where, size) for size, _ in pair)

        yield Trigger(f"{one[0]} from {one[1]}, {other[0]} from {other[1]}", "two sizes", both, suits)
    for dtype in ("bf16", "f32"):
        yield Trigger(
            f"{dtype}, k_dim from 64",
            "two sizes",
            lambda e, d=dtype: e.config.dtype == d and e.config.k_dim >= 64,
            lambda w: w.kind != "adapter",
        )


PLACES = {
    "h": ("head", (4, 9, 16, 40)),
    "b": ("sequence", (5, 17, 32)),
    "s": ("sequence", (5, 17)),
    "l": ("layer", (7, 33, 60)),
    "d": ("element", (16, 64, 128, 256)),
}


def places() -> Iterator[Trigger]:
    """At one place among several: the arrays must have it."""
    for axis, (name, indices) in PLACES.items():
        for index in indices:
            said = f"from {name} {index} on" if axis == "d" else f"{name} {index}"
            yield Trigger(
                f"{said} [{axis}]", "place", lambda e: True, lambda w, a=axis: a in axes(w), Place(axis, index)
            )


AXES: dict[Where, str] = {
    **{Where(kind, "append"): "bhnd" for kind in ("growing", "ring", "bounded", "sink")},
    **{Where(kind, "read"): "bhnd" for kind in ("growing", "ring", "bounded", "sink", "bucket")},
    **{Where(kind, "attend"): "bhnd" for kind in ("growing", "ring")},
    **{Where("store", method): "hnd" for method in ("read", "read_sequence")},
    Where("store", "append"): "lhnd",
    Where("store", "attend"): "xhnd",
    Where("store", "step"): "lshd",
    Where("store", "attend_batch"): "shnd",
    Where("work", "replay"): "lshd",
    Where("page", "append"): "xhnd",
    Where("page", "attend"): "xhnd",
    Where("page", "read_sequence"): "hnd",
    Where("page", "gather"): "hnd",
    Where("ragged", "feed"): "shnd",
    Where("ragged", "read_sequence"): "hnd",
    Where("ragged", "history"): "shnd",
    **{Where("bucket", m): "lbhnd" for m in ("prefill", "decode", "block", "encode", "cross")},
    Where("copy", "copy"): "nhd",
    Where("layers", "append"): "lhnd",
    Where("keyed", "request"): "xhnd",
    Where("keyed", "compute"): "xhnd",
    Where("keyed", "answer"): "xhnd",
    Where("keyed", "read_sequence"): "hnd",
    Where("layers", "histories"): "xhnd",
    Where("round", "draft"): "bhnd",
    Where("round", "read"): "bhnd",
    Where("adapter", "rotate"): "bhnd",
}
"""The axes of the arrays that a method takes, or gives if it takes none."""


def axes(where: Where) -> str:
    """Those of a method; none where it has no arrays of rows."""
    return AXES.get(where, "")


ORDERS: dict[str, tuple[str, ...]] = {
    "growing": ("rewind", "free", "restore", "snapshot", "attend", "commit", "abandon"),
    "ring": ("rewind", "free", "restore", "attend", "commit"),
    "bounded": ("rewind", "free"),
    "sink": ("rewind", "free", "keep"),
    "store": ("rollback", "reset", "zero", "load", "save", "set_length", "scatter", "step", "batch"),
    "page": ("fork", "truncate", "drop", "admit", "send", "expect"),
    "ragged": ("trim", "reorder", "filter", "repeat", "extend"),
    "bucket": ("cut", "sync", "unbind", "bind", "encode", "block", "prefill"),
    "copy": ("alias",),
    "layers": ("rewind", "free"),
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
    return "n" in axes(where) and where.method in ("append", "attend", "draft")


def last_given(event: Event) -> int:
    """The rows of the operation before."""
    return int(event.life.newest[-1].shape[-2]) if event.life.newest else 0


def rows(event: Event, array: Array) -> list[bytes]:
    """The rows of an array like those that a call is given, one by one."""
    axis = 0 if event.where.kind == "copy" else -2
    return [np.ascontiguousarray(row).tobytes() for row in np.moveaxis(array, axis, 0)]


def repeated(event: Event, which: int) -> bool:
    """Tell whether two rows that are given are equal: of the keys, or of the values."""
    found = rows(event, event.arrays[which])
    return len(set(found)) < len(found)


def repeats(event: Event) -> bool:
    """Tell whether the last key row that is given is the last of the operation before."""
    found = rows(event, event.arrays[-2])
    return bool(found) and len(event.life.newest) > 1 and found[-1:] == rows(event, event.life.newest[-2])[-1:]


def run(event: Event) -> list[Array]:
    """The newest rows of the keys and of the values, each `[rows, ...]`: those given, behind those of the operation
    before where these are of the same sort."""
    axis = 0 if event.where.kind == "copy" else -2
    here, before = ([np.moveaxis(a, axis, 0) for a in each[-2:]] for each in (event.arrays, event.life.newest))
    sorts = [[(len(a), a.shape[1:], a.dtype) for a in each] for each in (here, before)]
    same = len(before) == 2 and [s[1:] for s in sorts[0]] == [s[1:] for s in sorts[1]]
    same = same and sorts[1][0][0] == sorts[1][1][0]
    return [np.concatenate(pair) for pair in zip(before, here, strict=True)] if same else here


def neighbours(rows: Array, n: int) -> Array:
    """Whether the newest rows, so many, are equal to the bit, in each place that is no element."""
    if len(rows) < n:
        return np.zeros(rows.shape[1:-1], bool)
    words = np.ascontiguousarray(rows[-n:]).view(np.uint8).reshape(n, *rows.shape[1:-1], -1)
    return np.array((words == words[-1]).all(axis=(0, -1)))


def like_before(event: Event, n: int) -> Array:
    """Which of the rows that are given are equal to the n before them, in keys and values of all heads."""
    if len(event.arrays) < 2 or not all(a.size for a in event.arrays[-2:]):
        return np.zeros(rows_given(event), bool)
    words = [np.ascontiguousarray(r).view(np.uint8).reshape(len(r), -1) for r in run(event)]
    same = np.logical_and(*((w[1:] == w[:-1]).all(axis=1) for w in words)) if len(words[0]) > 1 else []
    each = [i >= n and all(same[i - n : i]) for i in range(len(words[0]))]
    return np.array(each[len(each) - rows_given(event) :], bool)


def in_run(event: Event, keys: int, values: int) -> bool:
    """Tell whether so many of the newest keys are equal, and so many values; where one says 0, not even two are."""
    found = [neighbours(r, n or 2).all() for r, n in zip(run(event), (keys, values), strict=True)]
    return bool(event.arrays[-1].size) and found == [n > 0 for n in (keys, values)]


def in_part(event: Event, axis: int) -> bool:
    """Tell whether the two newest rows are equal in the first place along an axis of `[sequences, heads]`, and in
    no other: in the first head, or in the first sequence."""
    if event.arrays[-1].ndim != 4:
        return False
    keys, values = (neighbours(r, 2) for r in run(event))
    each = (keys & values).all(axis=1 - axis)
    return bool(len(each) > 1 and each[0] and not each[1:].any())


def any_(event: Event, test: Callable[[Any], Any]) -> bool:
    """Tell whether something holds of the keys or the values given."""
    return any(bool(np.any(test(a.astype(np.float64)))) for a in event.arrays[-2:])


CONTENTS: dict[str, Callable[[Event], bool]] = {
    "equal keys": lambda e: repeated(e, -2),
    "equal values": lambda e: repeated(e, -1),
    "keys of the step before": repeats,
    "the second of equal rows": lambda e: bool(like_before(e, 1).any()),
    "the third of equal rows": lambda e: bool(like_before(e, 2).any()),
    "the sixth of equal rows": lambda e: bool(like_before(e, 5).any()),
    "equal rows from a call to the next": lambda e: rows_given(e) == 1 and in_run(e, 2, 2),
    "the second of equal keys, of other values": lambda e: in_run(e, 2, 0),
    "the second of equal values, of other keys": lambda e: in_run(e, 0, 2),
    "the second of rows that are equal in the first head": lambda e: in_part(e, 1),
    "the second of rows that are equal in the first sequence": lambda e: in_part(e, 0),
    "keys of zeros": lambda e: e.arrays[-2].size > 0 and not np.any(e.arrays[-2]),
    "a NaN": lambda e: any_(e, np.isnan),
    "an infinity": lambda e: any_(e, np.isinf),
    "a number below the normal ones": lambda e: any_(e, lambda a: (a != 0) & (abs(a) < 2.0**-14)),
}


def contents() -> Iterator[Trigger]:
    """By what the rows are."""
    for name, when in CONTENTS.items():
        yield Trigger(name, "content", lambda e, w=when: len(e.arrays) > 1 and quietly(w, e), content_taken)


def quietly(when: Callable[[Event], bool], event: Event) -> bool:
    """What a condition says of rows of any bits, without numpy's warnings."""
    with np.errstate(all="ignore"):
        return when(event)


def content_taken(where: Where) -> bool:
    """Tell whether a method takes keys and values, several at once."""
    return where.method in ("append", "feed", "prefill", "draft", "copy")


COUNTS = (3, 5, 9, 17)
OFTEN = (33, 65, 130, 260, 300)
CALLED_OFTEN = ("append", "step", "attend", "decode", "feed", "compute", "answer", "draft", "copy", "block")
"""The calls of methods that are called for each token."""


def counts() -> Iterator[Trigger]:
    """At the n-th call of a cache, and from then on."""
    for n in (*COUNTS, *OFTEN):
        suits = (lambda w: w.method in CALLED_OFTEN) if n in OFTEN else (lambda w: True)
        yield Trigger(f"call {n}", "count", lambda e, n=n: counted(e) == n, suits)


def counted(event: Event) -> int:
    """The calls of a method so far; a meter is wrong from a call on, because only differences count."""
    n = event.life.calls[event.where.method]
    return max((c for c in (*COUNTS, *OFTEN) if c <= n), default=0) if event.where.method == "meter" else n


def observations() -> Iterator[Trigger]:
    """Only unseen, or only seen."""
    changes = ("append", "rewind", "step", "rollback", "truncate", "feed", "trim", "decode", "copy")
    yield Trigger(
        "nobody looked since",
        "observation",
        lambda e: bool(e.life.done) and not e.life.looks,
        lambda w: w.method in changes,
    )
    yield Trigger(
        "somebody looked before", "observation", lambda e: e.life.looks > 0, lambda w: w.method in changes
    )
    yield Trigger(
        "looked at often", "observation", lambda e: e.life.looks >= 4, lambda w: w.method in (*changes, "read")
    )


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
    "a full cache": (("bounded",), lambda e: e.length == e.config.max_len),
    "the ends of a ramp are exact": (TURNING, lambda e: getattr(turning(e).scaling, "exact", False)),
    "a row has three positions": (("adapter",), lambda e: turning(e).sections is not None),
}


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


def asked_with_options(name: str, where: Where) -> bool:
    """Tell whether a method has the options that a combination is about; those about others have any."""
    methods = {**dict.fromkeys(ATTENDED, ("attend",)), **dict.fromkeys(TURNED, ("attend", "rotate"))}
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


FORMS: dict[str, Callable[[str], bool]] = {
    "codes of 4 bits": lambda form: "int4" in form or "q4_0" in form,
    "codes that are floats": lambda form: form.startswith("e"),
    "scales that are given": lambda form: "/t" in form or "/h" in form,
    "a scale for a row": lambda form: "/1" in form,
    "blocks of 32": lambda form: form.startswith("q"),
    "a form of keys and one of values": lambda form: "," in form,
    "latent rows": lambda form: "latent" in form,
}
"""What a form may be."""


FORMS_AT: dict[str, tuple[tuple[str, int], ...]] = {
    "codes of 4 bits": (("kv_heads", 9), ("kv_heads", 33), ("batch", 4), ("batch", 17)),
    "codes that are floats": (("kv_heads", 17), ("batch", 9)),
    "scales that are given": (("batch", 4), ("batch", 17)),
    "a scale for a row": (("kv_heads", 9), ("kv_heads", 40), ("batch", 9)),
    "blocks of 32": (("kv_heads", 5), ("kv_heads", 17), ("batch", 4), ("batch", 9)),
    "latent rows": (("batch", 4), ("batch", 17)),
    "a form of keys and one of values": (("kv_heads", 9), ("batch", 9)),
}
"""The sizes from which on forms are attacked: by heads, and by sequences."""

REFUSED = ("codes of 4 bits", "blocks of 32")
"""The forms that are attacked right after a rewind that was refused."""


def in_forms() -> Iterator[Trigger]:
    """Forms of rows; at sizes; and after a rewind that was refused."""
    for name, when in FORMS.items():
        yield Trigger(name, "combination", lambda e, w=when: w(e.config.form or ""), has_forms)
        for size, start in FORMS_AT[name]:
            yield Trigger(
                f"{name}, {size} from {start}",
                "combination",
                lambda e, w=when, s=size, n=start: w(e.config.form or "") and measured(e, s) >= n,
                has_forms,
            )
    for name in REFUSED:
        yield Trigger(
            f"{name}, a rewind was refused",
            "combination",
            lambda e, w=FORMS[name]: w(e.config.form or "") and e.previous == "rewind!",
            has_forms,
        )


def has_forms(where: Where) -> bool:
    """Tell whether attacks on forms are put on a kind."""
    return where.kind in ("growing", "ring")


def form_of(trigger: str) -> str:
    """The form that a trigger is about; empty if it is about none."""
    name = trigger.partition(", ")[0]
    return name if name in FORMS else ""


SORTS = ("size", "two sizes", "place", "order", "content", "count", "observation", "combination")


def triggers() -> list[Trigger]:
    """All of them."""
    return [
        *(*sizes(), *two_sizes(), *places(), *orders()),
        *(*contents(), *counts(), *observations(), *combinations(), *in_forms()),
    ]
