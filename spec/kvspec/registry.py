"""The chapters of the spec as the code reads them: their records, what these say of kinds, and rooms.

A room is a package that has a module for each chapter that needs one, called like the chapter.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from kvspec.chapters import CHAPTERS
from kvspec.chapters.record import Chapter, Kind, Tensor, Value
from kvspec.geometry import Config


@cache
def modules(room: str) -> dict[str, ModuleType]:
    """The modules of a room by their chapters, in the order of the chapters."""
    return {name: import_module(f"{room}.{name}") for name in CHAPTERS if find_spec(f"{room}.{name}") is not None}


def found(room: str, name: str) -> dict[str, Any]:
    """What the modules of a room call by this name, by their chapters; modules without it are left out."""
    return {chapter: vars(module)[name] for chapter, module in modules(room).items() if name in vars(module)}


def merged(room: str, name: str) -> dict[str, Any]:
    """The tables that the modules of a room call by this name, as one."""
    return {key: value for table in found(room, name).values() for key, value in table.items()}


RECORDS: dict[str, Chapter] = found("kvspec.chapters", "CHAPTER")
"""The records of the chapters."""

LETTERS: dict[str, str] = {record.letters: name for name, record in RECORDS.items()}
"""The chapters by what the ids of their clauses begin with."""

_KINDS: dict[str, Kind] = {name: record.kind for name, record in RECORDS.items() if record.kind is not None}

KINDS = tuple(_KINDS)
"""What an adapter can open. The other chapters are about operations on these."""

CACHES = tuple(name for name, kind in _KINDS.items() if kind.sequence)
"""The kinds that are caches of one sequence (or of a uniform batch), which append and rewind."""

VALUES: dict[str, Value] = {value.name: value for record in RECORDS.values() for value in record.values}
"""The values of answers."""

TENSORS: dict[str, Tensor] = {tensor.name: tensor for record in RECORDS.values() for tensor in record.tensors}
"""The arrays of answers."""

OBSERVABLES = tuple(dict.fromkeys(("state", "history", *(o for c in RECORDS.values() for o in c.observe))))
"""What a session can be told to observe: the state after every operation; the history after an append; ..."""


def opened(kind: str) -> Kind:
    """The record of a kind."""
    return _KINDS[kind]


def needed(kind: str) -> tuple[str, ...]:
    """The fields of a config that a kind must be given, and that only some kinds have."""
    return _KINDS[kind].needs


def fields_of(kind: str) -> tuple[str, ...]:
    """The fields of a config that are this kind's and not every kind's."""
    return (*_KINDS[kind].needs, *_KINDS[kind].may)


FIELDS_OF_SOME = tuple(dict.fromkeys(field for kind in KINDS for field in fields_of(kind)))
"""The fields of a config that some kinds have and others have not."""


def has(kind: str, chapter: str, operation: str) -> bool:
    """Whether a kind has an operation of a chapter."""
    return kind == chapter or kind in RECORDS[chapter].on or operation in _KINDS[kind].also


def fitted(kind: str, config: Config) -> Config:
    """The config without the fields that are another kind's."""
    return config.changed(**{field: None for field in FIELDS_OF_SOME if field not in fields_of(kind)})
