"""All effects."""

from __future__ import annotations

from functools import partial

from hostile.attacks.effects.answers import FOLDED, counted, folded, masked, one_more, seen_alike, turned, unmasked
from hostile.attacks.effects.arrays import answered, given
from hostile.attacks.effects.effect import Effect
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
        *(
            Effect(name, "wrong sequence", partial(number, PLACED, by), PLACED.__contains__, ELSEWHERE)
            for name, by in (("another place", -1), ("the next place", 1))
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
        *(
            Effect(
                name, sort, partial(packed, alter), Where("layers", "pack").__eq__, ("brings", "packed", "spans")
            )
            for name, (sort, alter) in PACKED.items()
        ),
        *(
            Effect(name, sort, make, Where("layers", "unpack").__eq__, (*SHOWN, "fold"))
            for name, (sort, make) in TAKEN.items()
        ),
        Effect("the mask is causal", "position", unmasked, lambda w: w.method == "attend", ("output",)),
        Effect("one more of all", "scale", counted, lambda w: w.method == "meter", ("meter",)),
        Effect("the position behind", "position", turned, lambda w: w.method == "rotate", ("rotated",)),
    ]
    return made
