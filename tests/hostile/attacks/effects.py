"""What an attack does: rows, heads, sequences, positions, lengths, scales and order go wrong, or refusals do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hostile.attacks.triggers import AXES, Place, axes, like_before
from hostile.attacks.wrapper import Do, Event, Where, length
from kvspec.contract import Pair
from kvspec.errors import Refused, Unsupported
from kvspec.geometry import Array
from kvspec.masks import CAUSAL
from kvspec.registry import KINDS

Alter = Callable[[Array, str, Event], Array]
"""Gives an array of these axes changed."""

Make = Callable[["Place | None"], Callable[[Event, Do], Any]]


class Effect(NamedTuple):
    """What happens. `fields`: the observables in which it shows, for the clauses that are right to blame."""

    id: str
    sort: str
    make: Make
    suits: Callable[[Where], bool]
    fields: tuple[str, ...]


def along(axis: str, order: Callable[[int], list[int]]) -> Alter:
    """Take the parts along an axis in another order."""

    def alter(array: Array, letters: str, event: Event) -> Array:
        at = letters.index(axis)
        return np.take(array, order(array.shape[at]), axis=at) if array.shape[at] else array

    return alter


def last_from(before: int) -> Callable[[int], list[int]]:
    """Each part as it is, but the last is a copy of one before it."""
    return lambda n: [*range(n - 1), max(0, n - 1 - before)]


def doubled(array: Array, letters: str, event: Event) -> Array:
    """Twice the last row."""
    made, at = array.copy(), letters.find("n")
    part: Any = slice(None) if at < 0 else (*[slice(None)] * at, slice(-1, None))
    with np.errstate(all="ignore"):
        made[part] = made[part] + made[part]
    return made


def stale(array: Array, letters: str, event: Event) -> Array:
    """The last row is that of the operation before, if it had such rows."""
    before = [a for a in event.life.newest if a.ndim == array.ndim and a.dtype == array.dtype]
    at = letters.find("n")
    for old in before:
        if at < 0 and old.shape == array.shape:
            return old.copy()
        same = (
            at >= 0 and old.shape[at] and np.delete(old.shape, at).tolist() == np.delete(array.shape, at).tolist()
        )
        if same and array.shape[at]:
            return np.concatenate([np.delete(array, -1, axis=at), np.take(old, [-1], axis=at)], axis=at)
    return array


def emptied(array: Array, letters: str, event: Event) -> Array:
    """The last row is zeros."""
    made, at = array.copy(), letters.find("n")
    made[(*[slice(None)] * max(at, 0), slice(-1, None))] = 0
    return made


def unwritten(n: int) -> Alter:
    """Rows that are equal to the n before them are zeros."""

    def alter(array: Array, letters: str, event: Event) -> Array:
        made, like = array.copy(), like_before(event, n)
        if len(like) == array.shape[letters.index("n")]:
            made[(*[slice(None)] * letters.index("n"), like)] = 0
        return made

    return alter


ROWS: dict[str, tuple[str, str, Alter]] = {
    "the last row is the one before": ("wrong row", "n", along("n", last_from(1))),
    "the last row is the first": ("wrong row", "n", along("n", lambda n: [*range(n - 1), 0])),
    "the last row is zeros": ("wrong row", "n", emptied),
    "rows like the one before are zeros": ("wrong row", "n", unwritten(1)),
    "rows like the two before are zeros": ("wrong row", "n", unwritten(2)),
    "rows like the five before are zeros": ("wrong row", "n", unwritten(5)),
    "the last head is the one before": ("wrong head", "h", along("h", last_from(1))),
    "the last head is the first": ("wrong head", "h", along("h", last_from(64))),
    "the last sequence is the one before": ("wrong sequence", "b", along("b", last_from(1))),
    "the last sequence is the first": ("wrong sequence", "s", along("s", last_from(64))),
    "the last layer is the one before": ("wrong sequence", "l", along("l", last_from(1))),
    "all rows one place on": ("position", "n", along("n", lambda n: [n - 1, *range(n - 1)])),
    "the last two rows change places": (
        "order",
        "n",
        along("n", lambda n: [*range(n - 2), *range(n - 1, max(-1, n - 3), -1)]),
    ),
    "the last row is doubled": ("scale", "d", doubled),
    "the last row is stale": ("stale row", "d", stale),
    "the last row is missing": ("length", "n", along("n", lambda n: list(range(n - 1)))),
}
"""Changes of arrays of rows: their sort, the axis that they need, and what they do."""


def at_place(alter: Alter, axis: str, place: Place | None) -> Alter:
    """The change at one place only: elsewhere the array is as it was. A change along the axis of the place puts the
    first part there."""
    if place is None:
        return alter
    at, first, elements = place.axis, place.index, place.axis == "d"
    if axis == at and not elements:
        alter = along(at, lambda n: [0 if i == first else i for i in range(n)])

    def placed(array: Array, letters: str, event: Event) -> Array:
        where = (*[slice(None)] * letters.index(at), slice(first, None if elements else first + 1))
        made, changed = array.copy(), alter(array, letters, event)
        if changed.shape == array.shape:
            made[where] = changed[where]
        return made

    return placed


def given(alter: Alter, axis: str, place: Place | None) -> Callable[[Event, Do], Any]:
    """The operation is done on other rows than it was given."""
    change = at_place(alter, axis, place)

    def effect(event: Event, do: Do) -> Any:
        letters, made = axes(event.where), list(event.given)
        for i, a in enumerate(made):
            taken = isinstance(a, np.ndarray) and a.ndim == len(letters) and a.size
            if taken and not (event.where.method in QUERIED and i == 0):
                made[i] = alike(change(np.asarray(a), letters, event), a)
        found = do(*made)
        event.struck = not same(made, event.given)
        return found

    return effect


QUERIED = ("attend", "attend_batch", "decode", "block", "cross")
"""Methods whose first argument is queries."""


def alike(made: Array, before: Any) -> Any:
    """The array in place of one before: in its type, which may say where it is; itself where nothing changed."""
    return before if same(made, np.asarray(before)) else made.view(type(before))


def answered(alter: Alter, axis: str, place: Place | None) -> Callable[[Event, Do], Any]:
    """What the operation gives is changed, in the array that it was to be written to if there is one."""
    change = at_place(alter, axis, place)

    def effect(event: Event, do: Do) -> Any:
        found, letters = do(*event.given), axes(event.where)
        if found is None:
            return found
        if isinstance(found, list):
            *others, last = found  # the pairs of several layers
            changed_ = Pair(*(change(np.asarray(a), letters, event) for a in last))
            event.struck = not same(changed_, last)
            return [*others, changed_]
        alone = isinstance(found, np.ndarray)
        parts = [found] if alone else list(found)
        made = [alike(change(np.asarray(a), letters, event), a) if np.size(a) else a for a in parts]
        event.struck = not same(made, parts)
        if any(a is found for a in event.given) and made[0].shape == found.shape:
            found[...] = made[0]
            return found
        return made[0] if alone else Pair(*made)

    return effect


def same(made: Any, before: Any) -> bool:
    """Tell whether arrays and numbers are what they were, to the bit."""
    if isinstance(before, np.ndarray):
        return made.shape == before.shape and made.tobytes() == before.tobytes()
    if isinstance(before, tuple | list):
        return len(made) == len(before) and all(map(same, made, before))
    return bool(made is before or made == before)


TARGETS: dict[Where, int] = {
    **{Where(kind, "rewind"): 0 for kind in ("growing", "ring", "bounded", "sink", "layers")},
    **{Where(kind, "restore"): 1 for kind in ("growing", "ring")},
    Where("growing", "snapshot"): 0,
    Where("store", "rollback"): 0,
    Where("store", "set_length"): 1,
    Where("store", "scatter"): 1,
    Where("store", "rollback_sequence"): 1,
    Where("page", "truncate"): 1,
    Where("page", "fork"): 1,
    Where("page", "expect"): 0,
    Where("bucket", "cut"): 0,
    Where("round", "commit"): 0,
}
"""The argument of a method that is a position or a length."""

PLACED: dict[Where, int] = {
    Where("store", "read"): 0,
    Where("store", "append"): 2,
    Where("store", "set_length"): 0,
    Where("store", "scatter"): 0,
    Where("store", "rollback_sequence"): 0,
    Where("store", "read_sequence"): 1,
    Where("store", "attend_batch"): 1,
    Where("page", "append"): 2,
    Where("page", "truncate"): 0,
    Where("page", "fork"): 0,
    Where("page", "read_sequence"): 0,
    **{Where("page", method): 0 for method in ("send", "sent", "arrive", "lose")},
    Where("ragged", "read_sequence"): 0,
    Where("bucket", "read"): 0,
    Where("round", "draft"): 0,
}
"""The argument of a method that names a sequence, a layer or a transfer."""

LISTS: dict[Where, int] = {
    Where("ragged", "reorder"): 0,
    Where("ragged", "filter"): 0,
    Where("ragged", "trim"): 0,
    Where("page", "gather"): 0,
}
"""The argument of a method that is a list of numbers."""


def number(at: dict[Where, int], by: int, place: Place | None) -> Callable[[Event, Do], Any]:
    """The operation is done on another number, where that can be done."""

    def effect(event: Event, do: Do) -> Any:
        index, made = at[event.where], list(event.given)
        old = event.number(index)
        if old is None or old + by < 0:
            return do(*made)
        made[index] = old + by
        try:
            found = do(*made)
        except (Refused, ValueError, KeyError, IndexError):
            return do(*event.given)
        event.struck = True
        return found

    return effect


def swapped(place: Place | None) -> Callable[[Event, Do], Any]:
    """The last two numbers of a list change places."""

    def effect(event: Event, do: Do) -> Any:
        index, made = LISTS[event.where], list(event.given)
        numbers = list(made[index])
        made[index] = [*numbers[:-2], *numbers[-1:-3:-1]]
        try:
            found = do(*made)
        except (Refused, ValueError, KeyError, IndexError):
            return do(*event.given)
        event.struck = made[index] != numbers
        return found

    return effect


def left_out(place: Place | None) -> Callable[[Event, Do], Any]:
    """Nothing is done, and nothing is said."""

    def effect(event: Event, do: Do) -> Any:
        event.struck = True

    return effect


def taken(place: Place | None) -> Callable[[Event, Do], Any]:
    """What must be refused is taken, and nothing is done."""

    def effect(event: Event, do: Do) -> Any:
        try:
            return do(*event.given)
        except Unsupported:
            raise
        except Exception:
            event.struck = True
            return None

    return effect


def changed(place: Place | None) -> Callable[[Event, Do], Any]:
    """What is refused loses the newest row before."""

    def effect(event: Event, do: Do) -> Any:
        try:
            return do(*event.given)
        except Unsupported:
            raise
        except Exception:
            event.struck = shorter(event)
            raise

    return effect


def shorter(event: Event) -> bool:
    """Have the cache lose its newest row, in its own way; tell whether that could be done."""
    cache, n = event.inner, length(event.inner)
    try:
        if n and event.where.kind == "page":
            ends = cache.sequences()
            cache.truncate(ends.index(max(ends)), n - 1)
        elif n and event.where.kind == "ragged":
            cache.trim([int(end == n) for end in cache.sequences()])
        elif n:
            getattr(cache, LOWER.get(event.where.kind, "rewind"))(n - 1)
    except Exception:
        return False
    return n > 0


LOWER = {"store": "rollback", "bucket": "cut"}
"""What makes a cache shorter, where it is no rewind."""


def spoiled(place: Place | None) -> Callable[[Event, Do], Any]:
    """The operation is done; then the newest row that is left is another one's."""

    def effect(event: Event, do: Do) -> Any:
        found = do(*event.given)
        event.struck = rewritten(event)
        return found

    return effect


def rewritten(event: Event) -> bool:
    """Write the newest row of a growing cache or a store anew, with the row before in its last half."""
    cache, n = event.inner, length(event.inner)
    if n < 2:
        return False
    if event.where.kind == "store":
        layer = list(cache.lengths()).index(n)
        keys, values = (a[None, :, -2:] for a in cache.read(layer))
        cache.set_length(layer, n - 1)
        cache.append(keys[:, :, :1], values[:, :, :1], layer)
        return not same([keys[:, :, :1]], [keys[:, :, 1:]])
    keys, values = (a[:, :, -2:-1] for a in cache.read("state"))
    cache.rewind(n - 1)
    cache.append(keys, values)
    cache.rewind(n)
    return True


def looked_up(place: Place | None) -> Callable[[Event, Do], Any]:
    """What was sent are the rows that the longest sequence has now."""

    def effect(event: Event, do: Do) -> Any:
        found, ends = do(*event.given), event.inner.sequences()
        if max(ends, default=-1) < 0:
            return found
        made = event.inner.pack(ends.index(max(ends)))
        event.struck = not same(made, found)
        return made

    return effect


def masked(place: Place | None) -> Callable[[Event, Do], Any]:
    """The last query sees what the first sees."""

    def effect(event: Event, do: Do) -> Any:
        found = do(*event.given)
        if found is None or not found.size:
            return found
        made = np.array(found)
        made[:, :, -1] = made[:, :, 0]
        event.struck = not same(made, found)
        return made

    return effect


def seen_alike(place: Place | None) -> Callable[[Event, Do], Any]:
    """The queries of the last layer see as those of the layer before."""

    def effect(event: Event, do: Do) -> Any:
        made = np.array(do(*event.given))
        if len(made) > 1:
            event.struck = not same(made[-1], made[-2])
            made[-1] = made[-2]
        return made

    return effect


def state_doubled(states: list[Array]) -> Array:
    """Twice the last state."""
    return states[-1] + states[-1]


def state_emptied(states: list[Array]) -> Array:
    """Zeros in place of the last state."""
    return np.zeros_like(states[-1])


def state_of_the_first(states: list[Array]) -> Array:
    """The first state in place of the last."""
    return states[0].copy()


FOLDED: dict[str, tuple[str, Callable[[list[Array]], Array]]] = {
    "the last state is doubled": ("scale", state_doubled),
    "the last state is zeros": ("wrong row", state_emptied),
    "the last state is the first": ("wrong sequence", state_of_the_first),
}
"""Changes of the states of layers: their sort, and what takes the place of the last one."""


def folded(alter: Callable[[list[Array]], Array], place: Place | None) -> Callable[[Event, Do], Any]:
    """The last state that is told is another."""

    def effect(event: Event, do: Do) -> Any:
        found = dict(do(*event.given))
        if found:
            last, made = max(found), alter([np.asarray(found[layer]) for layer in sorted(found)])
            event.struck = not same(made, np.asarray(found[last]))
            found[last] = made
        return found

    return effect


def one_more(place: Place | None) -> Callable[[Event, Do], Any]:
    """A number that is told is one too large; a yes is a no."""

    def effect(event: Event, do: Do) -> Any:
        found = do(*event.given)
        event.struck = True
        if isinstance(found, bool | np.bool_):
            return not found
        if isinstance(found, int):
            return found + 1
        if isinstance(found, list):
            return [*found[:-1], found[-1] + (found[-1] >= 0)] if found else found
        told = (found[0] + 1, *found[1:])
        return type(found)(*told) if hasattr(found, "_fields") else told

    return effect


def unmasked(place: Place | None) -> Callable[[Event, Do], Any]:
    """Queries see as if their mask were causal."""

    def effect(event: Event, do: Do) -> Any:
        made = list(event.given)
        made[3] = made[3]._replace(through=CAUSAL)
        event.struck = made[3] != event.given[3]
        return do(*made)

    return effect


def turned(place: Place | None) -> Callable[[Event, Do], Any]:
    """Rows are rotated for the position behind."""

    def effect(event: Event, do: Do) -> Any:
        made = list(event.given)
        made[1] = np.asarray(made[1]) + 1
        event.struck = bool(np.size(event.given[0]))
        return do(*made)

    return effect


def counted(place: Place | None) -> Callable[[Event, Do], Any]:
    """A meter counts itself too, so that each operation costs one more of everything."""

    def effect(event: Event, do: Do) -> Any:
        event.struck, more = True, event.life.calls["meter"]
        return {name: n + more for name, n in do().items()}

    return effect


SHOWN = ("sees", "history", "view", "state", "output", "rotated", "gathered", "batch", "saved", "host", "handle")
"""Where rows show."""

SIZES = ("offset", "retained", "buffered", "lengths", "sequences", "past", "free", "positions", "places", "drafted")
SIZES += ("transfer", "transfers", "sequence")
"""Where lengths show."""

TAKING = {w for w in AXES if w.method in ("append", "attend", "step", "feed", "copy", "replay", "draft")} | {
    Where("bucket", method) for method in ("prefill", "decode", "block", "encode")
}
TAKING |= {Where("keyed", method) for method in ("request", "compute", "answer")}
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
SKIPPED = (
    "free",
    "reset",
    "zero",
    "rewind",
    "rollback",
    "load",
    "truncate",
    "reset_batch",
    "sync",
    "cut",
    "unbind",
)
SKIPPED += (
    "keep",
    "finish",
    "abort",
    "evict",
    "clear",
    "unpack",
    "lose",
    "restore",
    "scatter",
    "trim",
    "filter",
    "reorder",
    "step",
    "draft",
    "alias",
    "encode",
    "rollback_sequence",
)
MASKS = {Where(kind, "mask") for kind in ("growing", "ring", "bounded", "sink", "ragged", "round", "layers")}
TOLD = {Where(kind, "lengths") for kind in ("growing", "ring", "bounded", "sink", "store", "layers")}
TOLD |= {Where(kind, "sequences") for kind in ("page", "ragged")} | {Where("bucket", "past")}
QUESTIONS = ("can_rewind", "can_append", "can_restore")
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


def effects() -> list[Effect]:
    """All of them."""
    made = []
    for name, (sort, axis, alter) in ROWS.items():
        kept, told = (LENGTHENED, READ) if sort == "length" else (TAKING, GIVING)
        taken_ = Effect(f"{name} (given)", sort, partial(given, alter, axis), suiting(axis, kept), (*SHOWN, "fold"))
        made.append(taken_)
        if sort != "stale row":
            made.append(Effect(f"{name} (told)", sort, partial(answered, alter, axis), suiting(axis, told), SHOWN))
    made += [
        Effect("a shorter length", "length", partial(number, TARGETS, -1), TARGETS.__contains__, (*SIZES, *SHOWN)),
        Effect("a longer length", "length", partial(number, TARGETS, 1), TARGETS.__contains__, (*SIZES, *SHOWN)),
        Effect(
            "another place", "wrong sequence", partial(number, PLACED, -1), PLACED.__contains__, (*SIZES, *SHOWN)
        ),
        Effect(
            "the next place", "wrong sequence", partial(number, PLACED, 1), PLACED.__contains__, (*SIZES, *SHOWN)
        ),
        Effect("another order", "order", swapped, LISTS.__contains__, (*SIZES, *SHOWN)),
        Effect("nothing is done", "stale row", left_out, lambda w: w.method in SKIPPED, (*SIZES, *SHOWN)),
        Effect("taken though refused", "lost refusal", taken, lambda w: w.method in REFUSING, ("result",)),
        Effect("changed though refused", "changed though refused", changed, loses, (*SIZES, *SHOWN, "result")),
        Effect("the row left is another's", "wrong row", spoiled, SPOILT.__contains__, SHOWN),
        Effect(
            "another's rows",
            "wrong sequence",
            looked_up,
            Where("page", "sent").__eq__,
            ("brings", "packed", "spans", *SHOWN),
        ),
        Effect("the last query sees as the first", "position", masked, MASKS.__contains__, ("mask", "sees")),
        Effect(
            "the last layer sees as the one before",
            "position",
            seen_alike,
            Where("layers", "mask").__eq__,
            ("sees",),
        ),
        Effect(
            "one too many is told",
            "length",
            one_more,
            TOLD.__contains__,
            (*SIZES, "can", "accepts", "held", "plan"),
        ),
        *(
            Effect(name, sort, partial(folded, alter), Where("layers", "states").__eq__, ("fold",))
            for name, (sort, alter) in FOLDED.items()
        ),
        Effect("the mask is causal", "position", unmasked, lambda w: w.method == "attend", ("output",)),
        Effect("one more of all", "scale", counted, lambda w: w.method == "meter", ("meter",)),
        Effect("the position behind", "position", turned, lambda w: w.method == "rotate", ("rotated",)),
    ]
    return made


SPOILT = {Where("growing", m) for m in ("rewind", "restore", "snapshot", "unpack")} | {
    Where("store", m) for m in ("rollback", "set_length", "save", "scatter", "step")
}
"""Methods after which a kept row is another's."""
