"""Parcels: packed, carried and unpacked."""

from __future__ import annotations

from typing import Any

from kvspec.geometry import heads_of
from kvspec.operations.table import Operation, argument, numbers_in
from kvspec.parcels import STATE, of_layers, spans
from kvspec.session.state import SessionState, call, metered
from kvspec.session.step import Inputs, Step


def pack(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Pack the rows of a cache, or of a sequence of it; read them as the descriptor says."""
    of = () if op.get("sequence") is None else (op["sequence"],)
    _packed(session, op, step, metered(session, step, cache, "pack", *of))


def _packed(session: SessionState, op: Operation, step: Step, made: Any) -> None:
    """Keep a parcel by its name, and tell what is in it: of a cache of layers in the part of each."""
    parts = session.parcels[op["name"]] = tuple(made) if isinstance(made, list) else (made,)
    step.values["brings"] = parts[0].offset
    for part in parts:
        _told(session, step, part, "" if part.sort.layer is None else f".{part.sort.layer}")


def _told(session: SessionState, step: Step, part: Any, which: str) -> None:
    """Tell what is in a part of a parcel."""
    step.values[f"spans{which}"] = [end for span in spans(part.positions) for end in span]
    if session.config.rank is not None:
        step.values[f"part{which}"] = list(heads_of(part.config))
    if session.unseen or part.config.form is not None:
        return
    if part.sort.holds == STATE:
        session.note(step, f"folded{which}", part.state())
    else:
        session.take(step, f"packed{which}", part.rows())


def carry(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Deliver a parcel as its caller does, under another name: no cache is asked."""
    damage = (argument(op, name) for name in ("cut", "flip", "version"))
    with session.metered(step):
        parts, how = session.parcels[op["name"]], (op["axes"], argument(op, "page"), *damage)
        chosen = of_layers(parts, numbers_in(op["layers"])) if op.get("layers") is not None else parts
        session.parcels[op["delivered"]] = tuple(part.carried(*how) for part in chosen)


def collect(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Deliver the parts of two parcels as one parcel; no cache is asked."""
    with session.metered(step):
        session.parcels[op["name"]] = session.parcels[op["first"]] + session.parcels[op["second"]]


def unpack(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Bring the rows of a parcel to a cache; to a pool as a new sequence."""
    number = metered(session, step, cache, "unpack", *session.parcels[op["name"]])
    if number is not None:
        step.values["sequence"] = int(number)


def send(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Begin to send the rows of a sequence."""
    step.values["transfer"] = int(metered(session, step, cache, "send", op["sequence"]))


def sent(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """End a transfer that sends, with what it read."""
    _packed(session, op, step, metered(session, step, cache, "sent", op["transfer"]))


def expect(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Take pages for rows that are to come."""
    step.values["transfer"] = int(metered(session, step, cache, "expect", op["n"]))


def arrive(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """End a transfer that expects rows, with those that came."""
    parts = session.parcels[op["name"]]
    step.values["sequence"] = int(metered(session, step, cache, "arrive", op["transfer"], *parts))


DO = {
    "pack": pack,
    "carry": carry,
    "collect": collect,
    "unpack": unpack,
    "send": send,
    "sent": sent,
    "expect": expect,
    "arrive": arrive,
    "lose": call("lose", "transfer"),
}
