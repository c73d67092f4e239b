"""Operations that make, use and end snapshots."""

from __future__ import annotations

from typing import Any

from kvspec.operations.table import OPERATIONS, Operation, argument
from kvspec.session.offered import offered
from kvspec.session.state import SessionState
from kvspec.session.step import Inputs, Step


def snapshot(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Save rows of the cache."""
    take = offered(cache, "snapshot")
    with session.metered(step):
        taken = take(argument(op, "start"))
    _bind(session, op, step, taken)


def restore(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Bring saved rows back."""
    put = offered(cache, "restore")
    with session.metered(step):
        put(session.snapshots[op["name"]], op["to"])


def merge(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Merge two snapshots into one."""
    parent, child = session.snapshots[op["parent"]], session.snapshots[op["child"]]
    join = offered(cache, "merge")
    with session.metered(step):
        made = join(parent, child)
    _bind(session, op, step, made)


def split(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Split one snapshot into two."""
    cut = offered(cache, "split")
    with session.metered(step):
        parts = cut(session.snapshots[op["name"]], op["at"])
    _bind(session, op, step, *parts)


def close(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Return a snapshot's memory."""
    saved = session.snapshots[op["name"]]
    with session.metered(step):
        if saved is not None:
            saved.close()
    if saved is not None:
        step.values["bytes"] = saved.nbytes


def _bind(session: SessionState, op: Operation, step: Step, *made: Any) -> None:
    for name, saved in zip(OPERATIONS[op["op"]].makes, made, strict=True):
        session.snapshots[op[name]] = saved
        seen = None if saved is None else [saved.start, saved.stop, saved.nbytes]
        step.values["snapshot" if name == "name" else name] = seen


DO = {"snapshot": snapshot, "restore": restore, "merge": merge, "split": split, "close": close}
