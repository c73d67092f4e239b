"""All effects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from hostile.attacks.effects.answers import FOLDED, counted, folded, masked, one_more, seen_alike, turned, unmasked
from hostile.attacks.effects.arrays import answered, given
from hostile.attacks.effects.drafts import ENDED, HUNG, hung
from hostile.attacks.effects.effect import Effect, Make
from hostile.attacks.effects.methods import (
    GIVING,
    LENGTHENED,
    MASKS,
    READ,
    REFUSING,
    SHOWN,
    SIZES,
    SKIPPED,
    SPOILT,
    TAKING,
    TOLD,
    loses,
    suiting,
)
from hostile.attacks.effects.numbers import LISTS, PLACED, TARGETS, number, swapped
from hostile.attacks.effects.parts import PACKED, TAKEN, packed
from hostile.attacks.effects.refusals import changed, left_out, looked_up, spoiled, taken
from hostile.attacks.effects.rows import ROWS
from hostile.attacks.wrapper import Where

ELSEWHERE = (*SIZES, *SHOWN, "result")
"""Where it shows that another place was named than was given: what is not there must be refused, the other may be
there."""


OF_NUMBERS = (
    ("a shorter length", "length", partial(number, TARGETS, -1), TARGETS, (*SIZES, *SHOWN)),
    ("a longer length", "length", partial(number, TARGETS, 1), TARGETS, (*SIZES, *SHOWN)),
    ("another place", "wrong sequence", partial(number, PLACED, -1), PLACED, ELSEWHERE),
    ("the next place", "wrong sequence", partial(number, PLACED, 1), PLACED, ELSEWHERE),
    ("another order", "order", swapped, LISTS, (*SIZES, *SHOWN)),
    ("one too many is told", "length", one_more, TOLD, (*SIZES, "can", "accepts", "held", "plan")),
    ("the row left is another's", "wrong row", spoiled, SPOILT, SHOWN),
    ("the last query sees as the first", "position", masked, MASKS, ("mask", "sees")),
    ("another's rows", "wrong sequence", looked_up, {Where("page", "sent")}, ("brings", "packed", "spans", *SHOWN)),
    ("the last layer sees as the one before", "position", seen_alike, {Where("layers", "mask")}, ("sees",)),
)
"""Effects on these methods alone: the sort, what makes it, the methods, and the observables in which it shows."""

OF_METHODS: tuple[tuple[str, str, Make, Callable[[Where], bool], tuple[str, ...]], ...] = (
    ("nothing is done", "stale row", left_out, lambda w: w.method in SKIPPED, (*SIZES, *SHOWN, "result")),
    ("taken though refused", "lost refusal", taken, lambda w: w.method in REFUSING, ("result",)),
    ("changed though refused", "changed though refused", changed, loses, (*SIZES, *SHOWN, "result")),
    ("the mask is causal", "position", unmasked, lambda w: w.method == "attend", ("output",)),
    ("one more of all", "scale", counted, lambda w: w.method == "meter", ("meter",)),
    ("the position behind", "position", turned, lambda w: w.method == "rotate", ("rotated",)),
)
"""Effects on methods of any kind that have one of these names."""


def effects() -> list[Effect]:
    """All of them."""
    return [
        *_of_rows(),
        *(Effect(name, sort, make, on.__contains__, fields) for name, sort, make, on, fields in OF_NUMBERS),
        *(Effect(*each) for each in OF_METHODS),
        *_of_layers(),
    ]


def _of_rows() -> Iterator[Effect]:
    """Rows that are given are others, or those that are told."""
    for name, (sort, axis, alter) in ROWS.items():
        kept, told = (LENGTHENED, READ) if sort == "length" else (TAKING, GIVING)
        yield Effect(f"{name} (given)", sort, partial(given, alter, axis), suiting(axis, kept), (*SHOWN, "fold"))
        if sort != "stale row":
            yield Effect(f"{name} (told)", sort, partial(answered, alter, axis), suiting(axis, told), SHOWN)


def _of_layers() -> Iterator[Effect]:
    """States, parts of parcels and drafts of a cache of layers."""
    for name, (sort, fold) in FOLDED.items():
        yield Effect(name, sort, partial(folded, fold), Where("layers", "states").__eq__, ("fold",))
    for name, (sort, parts) in PACKED.items():
        shown = ("brings", "packed", "spans")
        yield Effect(name, sort, partial(packed, parts), Where("layers", "pack").__eq__, shown)
    for name, (sort, make) in TAKEN.items():
        yield Effect(name, sort, make, Where("layers", "unpack").__eq__, (*SHOWN, "fold"))
    for name, (sort, on) in HUNG.items():
        yield Effect(name, sort, partial(hung, on), Where("layers", "branch").__eq__, (*SIZES, *SHOWN, "fold"))
    for name, (sort, where, make) in ENDED.items():
        yield Effect(name, sort, make, where.__contains__, (*SIZES, *SHOWN, "result", "fold"))
