"""Drafts of layers: they hang elsewhere, others are kept, or those that were dropped stay."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from hostile.attacks.triggers.trigger import Place
from hostile.attacks.wrapper import Do, Event, Where, length
from kvspec.errors import Refused

ON = 2
"""The argument of a branch that says on which draft each hangs."""

ENDING = {Where("layers", method) for method in ("settle", "rewind", "free")}
"""Methods that drop drafts, and after which no query is asked."""


def on_none(on: list[int]) -> list[int]:
    """The last draft is the first of a way."""
    return [*on[:-1], -1]


def beside(on: list[int]) -> list[int]:
    """The last draft hangs on the draft before the one that is named."""
    return [*on[:-1], max(-1, on[-1] - 1)]


HUNG: dict[str, tuple[str, Callable[[list[int]], list[int]]]] = {
    "the last draft hangs on none": ("length", on_none),
    "the last draft hangs on another": ("wrong sequence", beside),
}
"""Changes of what drafts hang on: their sort, and the list in place of the one that is given."""


def hung(alter: Callable[[list[int]], list[int]], place: Place | None) -> Callable[[Event, Do], Any]:
    """Drafts hang on others than the caller says, where those that he says are there."""

    def effect(event: Event, do: Do) -> Any:
        *rows, on = event.given if len(event.given) > ON else (*event.given, None)
        if not on or done_by_a_copy(event) is None:
            return do(*event.given)
        made = alter(list(on))
        event.struck = made != list(on)
        return do(*rows, made)

    return effect


def done_by_a_copy(event: Event) -> Any:
    """A copy of the cache that did the operation; None where it is refused."""
    copy = deepcopy(event.inner)
    try:
        getattr(copy, event.where.method)(*event.given)
    except (Refused, ValueError, IndexError):
        return None
    return copy


def first_kept(place: Place | None) -> Callable[[Event, Do], Any]:
    """The first drafts are kept, as many as are on the way that is chosen."""

    def effect(event: Event, do: Do) -> Any:
        copy = done_by_a_copy(event) if of_one_call(event) else None
        kept = 0 if copy is None else length(copy) - length(event.inner)
        if not 0 < kept <= event.given[0]:  # of a straight way they are the right ones
            return do(*event.given)
        do(-1)
        event.inner.append(*(a[:, :, :kept] for a in event.life.newest))
        event.inner.append(*(a[:, :, :0] for a in event.life.newest))
        event.struck = True
        return None

    return effect


def of_one_call(event: Event) -> bool:
    """Tell whether all drafts there are came in the call before."""
    return event.previous == "branch" and event.life.done[-2:-1] != ["branch"]


def staying(place: Place | None) -> Callable[[Event, Do], Any]:
    """The drafts of the call before are there again."""

    def effect(event: Event, do: Do) -> Any:
        drafts = event.life.newest if of_one_call(event) else []
        found = do(*event.given)
        for rows in [drafts, [a[:, :, :0] for a in drafts]] if drafts else []:
            event.inner.branch(*rows)
            event.struck = True
        return found

    return effect


ENDED: dict[str, tuple[str, set[Where], Callable[[Place | None], Callable[[Event, Do], Any]]]] = {
    "the first drafts are kept": ("wrong row", {Where("layers", "settle")}, first_kept),
    "dropped drafts stay": ("stale row", ENDING, staying),
}
"""What becomes of drafts: its sort, the methods after which it does, and what makes it."""
