"""Snapshots in the list model."""

from __future__ import annotations

from typing import Any

from kvconform.oracle.list_model.expected import Expected
from kvref.list_model import caches
from kvref.list_model.caches import History, Saved
from kvspec.operations.table import Operation, argument
from kvspec.session.step import Inputs


def snapshot(lists: Any, cache: History, op: Operation, step: Expected, given: Inputs) -> None:
    """Tokens saved."""
    _bind(lists, step, "snapshot", op["name"], cache.snapshot(argument(op, "start")))


def restore(lists: Any, cache: History, op: Operation, step: Expected, given: Inputs) -> None:
    """Tokens brought back."""
    cache.restore(lists.saved[op["name"]], op["to"])


def merge(lists: Any, cache: History, op: Operation, step: Expected, given: Inputs) -> None:
    """One of two."""
    made = cache.merge(lists.saved[op["parent"]], lists.saved[op["child"]])
    _bind(lists, step, "snapshot", op["name"], made)


def split(lists: Any, cache: History, op: Operation, step: Expected, given: Inputs) -> None:
    """Two of one."""
    parent, child = cache.split(lists.saved[op["name"]], op["at"])
    _bind(lists, step, "parent", op["parent"], parent)
    _bind(lists, step, "child", op["child"], child)


def close(lists: Any, cache: History, op: Operation, step: Expected, given: Inputs) -> None:
    """The end of a snapshot."""
    saved = lists.saved[op["name"]]
    if saved is not None:
        caches.close(saved)


def _bind(lists: Any, step: Expected, value: str, name: str, saved: Saved | None) -> None:
    lists.saved[name] = saved
    step.values[value] = saved and ([saved.stop] if saved.kind == "ring" else [saved.start, saved.stop])


DO = {"snapshot": snapshot, "restore": restore, "merge": merge, "split": split, "close": close}
