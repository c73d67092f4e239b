"""Abilities: the smallest things that some engines have and others lack. A claim lists those that it lacks.

Every operation is an ability of its chapter, and the records of the chapters name the others. Operations that a
kind shares with another (`rewind` of a growing cache and of a ring) are abilities of each kind.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from kvspec.chapters.record import Ability
from kvspec.geometry import Config
from kvspec.operations.table import CHAPTER_OF, OPEN, OPERATIONS, Operation, argument
from kvspec.registry import KINDS, RECORDS, Needed, brought, named_abilities


def needed(op: Operation, kind: str, config: Config) -> Iterator[Needed]:
    """Give the abilities that an operation takes on a cache of this kind and config."""
    chapter = owner(op, kind)
    yield chapter, op["op"]
    for ability in named_abilities(chapter):
        if op["op"] in ability.operations and _takes(ability, op, config):
            yield chapter, ability.name
    for part in _parts(op):
        yield from (("mask", a.name) for a in RECORDS["mask"].abilities if a.mask == part)
    if op["op"] == OPEN.name:
        yield from needed_to_open(kind, config)


def owner(op: Operation, kind: str) -> str:
    """The chapter whose ability an operation is: its own, or the kind of cache where several kinds share it."""
    defined = CHAPTER_OF.get(op["op"], kind)
    return kind if defined in KINDS else defined


def needed_by_clauses(op: Operation, kind: str, cites: Collection[str]) -> Iterator[Needed]:
    """Give the abilities that an operation takes by the clauses that it exercises on a cache as it then is."""
    chapter = owner(op, kind)
    by_clauses = (a for a in named_abilities(chapter) if a.clauses) if chapter else ()
    yield from ((chapter, a.name) for a in by_clauses if not set(a.clauses).isdisjoint(cites))


def needed_to_open(kind: str, config: Config) -> Iterator[Needed]:
    """Give the abilities that opening a cache takes."""
    owners = ((owner, a) for owner in (kind, *sorted(brought(config))) for a in named_abilities(owner))
    of_configs = ((owner, a) for owner, a in owners if a.config and not a.operations)
    yield from ((owner, a.name) for owner, a in of_configs if _opened_with(a, config))


def _takes(ability: Ability, op: Operation, config: Config) -> bool:
    """Tell whether one of an ability's operations takes it: by an argument, or on caches of its config alone."""
    return _opened_with(ability, config) if ability.config else _given(ability, op)


def _opened_with(ability: Ability, config: Config) -> bool:
    value = getattr(config, ability.config)
    if ability.like:
        return value is not None and re.search(ability.like, str(value)) is not None
    size = value or 0  # a size that is not given is 0
    return bool(size > 1 if ability.value is None else size == ability.value)


def _given(ability: Ability, op: Operation) -> bool:
    value = argument(op, ability.argument)
    if ability.like:
        return value is not None and re.search(ability.like, value) is not None
    if ability.value is not None:
        return bool(value == ability.value)
    return bool(value != argument({"op": op["op"]}, ability.argument))


def _parts(op: Operation) -> list[str]:
    """The sorts of parts of an operation's masks; `none` for a mask without any."""
    listed = [op[a.name] for a in OPERATIONS[op["op"]].arguments if a.holds == "mask" and a.name in op]
    return [sort for parts in listed for sort in (map(_sort, parts) if parts else ("none",))]


def _sort(part: Any) -> str:
    if not isinstance(part, dict):
        return str(part)
    return "window" if "window" in part else {"bool": "boolean", "f32": "scores"}[part["dtype"]]
