"""Operations on a growing cache or a ring; observes the cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvspec.contract import Lengths
from kvspec.operations.table import Operation, cache_of
from kvspec.registry import CACHES
from kvspec.session.arrays import Lent
from kvspec.session.state import EngineArray, SessionState
from kvspec.session.step import Inputs, Step


def look(session: SessionState, cache: Any, step: Step, which: str = "") -> None:
    """Observe lengths, and the state if asked for; for a cache in an open round only the offset."""
    speculating = session.speculating(cache)
    if "offset" in session.observe:
        lengths = Lengths(*cache.lengths())._asdict()
        seen = ("offset",) if speculating else lengths
        step.values.update({f"{name}{which}": lengths[name] for name in seen})
    if speculating:
        return
    if "state" in session.observe and session.shows_state(cache):
        session.take(step, f"state{which}", cache.read("state"))
    session.held(cache, step, which)


def append(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Append rows behind the offset; then read what their queries attend to."""
    rows, of = session.handed(op, inputs), op.get("layer", op.get("sequence"))
    with session.metered(step):
        cache.append(*rows) if of is None else cache.append(*rows, of)
    if session.kinds[cache_of(op)] in CACHES and not session.speculating(cache):
        session.history(cache, step)


def view(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Read the view, which needs no write."""
    session.wait()
    with session.metered(step):
        found = cache.read("view")
    session.take(step, "view", found)


def ask(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Ask whether a rewind would be accepted."""
    with session.metered(step):
        can = cache.can_rewind(op["to"])
    step.answered("can", can)


def rewind(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Ask whether the rewind would be accepted, where that is observed; then rewind."""
    if "can" in session.observe:
        step.answered("can", cache.can_rewind(op["to"]))
    with session.metered(step):
        cache.rewind(op["to"])


def free(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Return to the state of a cache never written."""
    with session.metered(step):
        cache.free()


def scribble(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Check that the newest arrays passed in or out are unchanged; then overwrite all of them."""
    lent = session.lent[cache_of(op)]
    step.values["intact"] = all(copy is None or array.tobytes() == copy.tobytes() for array, copy in lent)
    overwrite(lent)


def overwrite(lent: Lent) -> None:
    """Overwrite arrays that were passed in or out, as their caller may."""
    for array, copy in lent:
        known = array if copy is None else copy
        value = False if getattr(known, "dtype", None) == np.dtype(bool) else np.nan
        if isinstance(array, EngineArray):
            array.overwrite(value)
        elif isinstance(array, np.ndarray) and array.flags.writeable:
            array[...] = value
    lent.clear()


DO = {
    "append": append,
    "view": view,
    "ask": ask,
    "rewind": rewind,
    "free": free,
    "scribble": scribble,
}
