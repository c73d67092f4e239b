"""Speculation: rounds over caches, layer by layer, drafts, and committing some of them."""

from __future__ import annotations

from typing import Any

from kvspec import masks
from kvspec.errors import Unsupported
from kvspec.operations.table import Operation, argument, cache_of, numbers_in
from kvspec.session.operations import growing
from kvspec.session.state import SessionState, metered
from kvspec.session.step import Inputs, Step


class Round:
    """A round in the session: the adapter's round, the letters of its layers, and its caches."""

    def __init__(self, inner: Any, letters: str, caches: list[Any], isolated: bool) -> None:
        self.inner, self.letters, self.caches, self.isolated = inner, letters, caches, isolated
        self.open = True

    def layer(self, letter: str) -> int:
        """Give the layer of a cache. Raises Unsupported if the round does not have it."""
        if letter not in self.letters:
            raise Unsupported(f"cache {letter} is in no layer of this round ({self.letters})")
        return self.letters.index(letter)

    def mask(self, letter: str, logical: masks.Logical) -> Any:
        """Make the mask for the latest draft on that layer."""
        return self.inner.mask(self.layer(letter), logical)


def speculate(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Wrap the caches named, one a layer."""
    letters, isolated = op["layers"], bool(argument(op, "isolated"))
    wrapped = [None if letter == "-" else session.caches[letter] for letter in letters]
    inner = metered(session, step, session.adapter, "speculate", wrapped, isolated)
    former = session.rounds.get(op["name"])
    if former is not None and former.open:
        former.inner.abandon()  # nobody can name it any more
    session.rounds[op["name"]] = Round(inner, letters, wrapped, isolated)


def draft(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Append drafts to one layer of the round; then read what their queries attend to."""
    round_ = session.rounds[op["name"]]
    layer, rows = round_.layer(cache_of(op)), session.handed(op, inputs)
    on = [numbers_in(op["on"])] if "on" in op else []
    with session.metered(step):
        round_.inner.draft(layer, *rows, *on)
    session.wait()
    step.values["drafted"] = round_.inner.offset(layer)
    if on:
        step.values["stand"] = [int(position) for position in round_.inner.positions(layer)]
    if "history" in session.observe:
        session.take(step, "history", round_.inner.read(layer))
    if "mask" in session.observe:
        session.note(step, "mask", round_.inner.mask(layer, masks.CAUSAL))


def commit(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Keep the first n drafts on every layer, and end the round."""
    _end(session, op, step, "commit", op["n"])


def choose(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Keep the way to a draft on every layer, and end the round."""
    _end(session, op, step, "choose", op["draft"])


def abandon(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Drop the round, and all drafts with it."""
    _end(session, op, step, "abandon")


def _end(session: SessionState, op: Operation, step: Step, how: str, *kept: int) -> None:
    round_ = session.rounds[op["name"]]
    metered(session, step, round_.inner, how, *kept)
    round_.open = False


def look_at_round(session: SessionState, op: Operation, step: Step) -> None:
    """Observe all caches of a round, after an operation on the whole round."""
    round_ = session.rounds.get(op["name"])
    letters = op.get("layers") or (round_.letters if round_ else "")
    for letter in sorted(set(letters) - {"-"}):
        if session.kinds.get(letter) in ("growing", "ring"):
            growing.look(session, session.caches[letter], step, f".{letter}")


DO = {"speculate": speculate, "draft": draft, "commit": commit, "choose": choose, "abandon": abandon}
