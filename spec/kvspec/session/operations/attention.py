"""Attention: append rows and answer queries in one call, also over a batch and captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kvspec import masks
from kvspec.contract import Attention, Rope
from kvspec.errors import Refused
from kvspec.operations.table import Operation, argument, cache_of, numbers_in
from kvspec.registry import CACHES
from kvspec.rope.scaling import parsed
from kvspec.session.state import SessionState, metered, offered
from kvspec.session.step import Inputs, Step

SCALES = 256
"""A scale and a sink are written in a trace as whole numbers of parts; this many make one."""


def how(op: Operation, inputs: Inputs) -> Attention:
    """Give the options of an operation's queries."""
    scaling = parsed(argument(op, "scaling"))
    rope = None if op.get("rope") is None else Rope(op["rope"], argument(op, "base"), scaling=scaling)
    through = masks.CAUSAL if inputs.logical is None else inputs.logical
    scale = None if op.get("scale") is None else op["scale"] / SCALES
    softcap, parts = float(argument(op, "softcap")), tuple(numbers_in(op.get("cuts", "empty")))
    return Attention(through, argument(op, "splits"), rope, scale, softcap, sinks(op), parts)


def sinks(op: Operation) -> tuple[float, ...] | None:
    """Give an operation's learned sinks, rounded to f32; None if it has none."""
    given = op.get("head_sinks")
    return None if given is None else tuple(float(np.float32(n / SCALES)) for n in numbers_in(given))


def _given(op: Operation) -> tuple[tuple[float, ...], ...]:
    """Give the sinks as an argument, if there are some: an engine without them need not know of it."""
    given = sinks(op)
    return () if given is None else (given,)


def answered(session: SessionState, op: Operation, step: Step, inputs: Inputs, ask: Callable[[Any], Any]) -> None:
    """Call `ask` and note its output; give it an output array if the operation says so."""
    room, resident = session.room(op, inputs), bool(op.get("resident"))
    try:
        with session.metered(step):
            output = ask(None if room is None else room.out)
        session.wait()
    except Refused:
        if room is not None:
            step.values["intact"] = room.untouched()
        raise
    if room is not None and not resident:
        step.values["intact"] = room.guarded
    session.note(step, "output", output if room is None else room.answer(output), resident)


def attend(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Append, then attend; on a store's layer or a paged cache's sequence where it says so."""
    arrays, do = session.handed(op, inputs), offered(cache, "attend")
    of = op.get("layer", op.get("sequence"))
    answered(session, op, step, inputs, lambda out: do(*arrays, how(op, inputs), out, of))
    if session.kinds[cache_of(op)] in CACHES and not session.speculating(cache):
        session.history(cache, step)


def attendbatch(session: SessionState, store: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Attend with one query for each sequence."""
    (queries,), do = session.handed(op, inputs), offered(store, "attend_batch")
    splits, more = argument(op, "splits"), _given(op)
    answered(session, op, step, inputs, lambda out: do(queries, op["layer"], splits, out, *more))


def captureattend(session: SessionState, store: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Capture an attend of one row."""
    options = op["layer"], op.get("heads", session.config.kv_heads), argument(op, "splits"), *_given(op)
    session.names["captured attention"][op["name"]] = metered(session, step, store, "capture_attend", *options)


def replayattend(session: SessionState, store: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Replay the captured attend on new queries and rows."""
    work, arrays = session.names["captured attention"][op["name"]], session.handed(op, inputs)
    output = metered(session, step, work, "replay", *arrays)
    session.note(step, "output", output, bool(op.get("resident")))


DO = {
    "attend": attend,
    "attendbatch": attendbatch,
    "captureattend": captureattend,
    "replayattend": replayattend,
}
