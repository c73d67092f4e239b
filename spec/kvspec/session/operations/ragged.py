"""Ragged caches: feed, trim and rearrange sequences of unequal lengths. Each is observed without its padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvspec.geometry import Array
from kvspec.operations.table import Operation
from kvspec.session.arrays import with_batch_axis
from kvspec.session.operations import growing
from kvspec.session.state import SessionState, call, metered
from kvspec.session.step import Inputs, Step


def look(session: SessionState, cache: Any, step: Step, which: str = "") -> None:
    """Observe the length and the rows of each sequence; after a feed the positions of its block too, and what its
    queries see."""
    lengths = [int(n) for n in cache.sequences()]
    step.values["sequences"] = lengths
    held = _held(session, cache, step, lengths)
    for sequence in range(len(lengths)):
        session.take(step, f"state.{sequence}", cache.read_sequence(sequence), with_batch_axis)
    positions = cache.positions()
    if positions is None:
        return
    owned = np.asarray(positions) >= 0
    for sequence, row in enumerate(np.where(owned, positions, -1).tolist()):
        step.values[f"positions.{sequence}"] = row
    if "history" in session.observe:
        _history(session, cache, step, held)
    if "sees" in session.observe:
        session.note(step, "mask", cache.mask())
        _blank(step, owned)


def _held(session: SessionState, cache: Any, step: Step, lengths: list[int]) -> list[int]:
    """Give how many rows of each sequence are kept, and note it where a window lets go of some."""
    if session.config.window is None or "history" not in session.observe:
        return lengths
    step.values["holds"] = held = [int(n) for n in cache.holds()]
    return held


def _history(session: SessionState, cache: Any, step: Step, held: list[int]) -> None:
    """Note the block that queries attend to, sequence by sequence; its padding as NaN, whatever it holds."""
    starts = cache.starts()
    for part, block in zip("kv", cache.history(), strict=True):
        session.keep(block)
        for sequence, (start, n) in enumerate(zip(starts, held, strict=True)):
            rows = np.array(block[sequence][None])
            rows[:, :, :start], rows[:, :, start + n :] = np.nan, np.nan
            step.arrays[f"history.{sequence}.{part}"] = rows


def _blank(step: Step, owned: Array) -> None:
    """Have queries that are padding see nothing, whatever their mask `[sequences, 1, n, width]` says."""
    mask = step.arrays.get("mask")
    if mask is not None:
        step.arrays["mask"] = mask & owned[:, None, :, None]


def extend(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Add the sequences of another cache."""
    metered(session, step, cache, "extend", session.caches[op["other"]])


def join(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Make the sequences of several caches those of one."""
    metered(session, step, cache, "join", [session.caches[other] for other in op["others"]])


def extract(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Make a sequence the rows of a cache of its own; observe that too."""
    into = session.caches[op["into"]]
    metered(session, step, cache, "extract", op["sequence"], into)
    growing.look(session, into, step, f".{op['into']}")


DO = {
    "feed": call("feed", "lengths"),
    "trim": call("trim", "counts"),
    "filter": call("filter", "order"),
    "reorder": call("reorder", "order"),
    "repeat": call("repeat", "times"),
    "extend": extend,
    "join": join,
    "extract": extract,
}
