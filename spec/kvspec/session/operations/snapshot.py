"""Operations that make, use and end snapshots."""

from __future__ import annotations

from typing import Any

from kvspec.operations.table import OPERATIONS, Operation, argument
from kvspec.session.state import SessionState, metered
from kvspec.session.step import Inputs, Step


def snapshot(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Save rows of the cache."""
    _bind(session, op, step, metered(session, step, cache, "snapshot", argument(op, "start")))


def restore(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Bring saved rows back."""
    metered(session, step, cache, "restore", session.snapshots[op["name"]], op["to"])


def merge(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Merge two snapshots into one."""
    parent, child = session.snapshots[op["parent"]], session.snapshots[op["child"]]
    _bind(session, op, step, metered(session, step, cache, "merge", parent, child))


def split(session: SessionState, cache: Any, op: Operation, step: Step, inputs: Inputs) -> None:
    """Split one snapshot into two."""
    _bind(session, op, step, *metered(session, step, cache, "split", session.snapshots[op["name"]], op["at"]))


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
