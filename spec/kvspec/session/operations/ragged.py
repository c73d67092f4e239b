"""Ragged caches: feed, attend, trim and rearrange sequences. Each is observed without its padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kvspec.geometry import Array
from kvspec.operations.table import Operation, numbers_in
from kvspec.session.arrays import with_batch_axis
from kvspec.session.operations import growing
from kvspec.session.state import SessionState, call, metered, offered
from kvspec.session.step import Inputs, Step


def look(session: SessionState, cache: Any, step: Step, which: str = "") -> None:
    """Observe the length and the rows of each sequence; after a feed the positions of its block too, and what its
    queries see."""
    lengths = [int(n) for n in cache.sequences()]
    step.values["sequences"] = lengths
    held = _held(session, cache, step, lengths)
    for sequence in range(len(lengths)) if "state" in session.observe else ():
        session.take(step, f"state.{sequence}", cache.read_sequence(sequence), with_batch_axis)
    positions = cache.positions() if "positions" in session.observe else None
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


def attendblock(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Feed a block and have its columns ask; what padding is answered is no output."""
    arrays, do, lengths = session.handed(op, inputs), offered(cache, "attend_block"), numbers_in(op["lengths"])
    with session.metered(step):
        output = do(*arrays, lengths)
    session.wait()
    session.note(step, "output", output)
    found = step.arrays.get("output")
    if found is not None:
        step.arrays["output"] = np.where(
            _asks(found.shape[2], lengths, session.config.padding), found, np.float32(0)
        )


def _asks(columns: int, lengths: Sequence[int], padding: str | None) -> Array:
    """Give which columns of a block are rows, `[sequences, 1, n, 1]`."""
    place, own = np.arange(columns), np.array(lengths)[:, None]
    return (place >= columns - own if padding == "left" else place < own)[:, None, :, None]


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
    "attendblock": attendblock,
    "trim": call("trim", "counts"),
    "filter": call("filter", "order"),
    "reorder": call("reorder", "order"),
    "repeat": call("repeat", "times"),
    "extend": extend,
    "join": join,
    "extract": extract,
}
