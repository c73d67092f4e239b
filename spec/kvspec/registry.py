"""The registry of chapters: their records, their kinds, and their modules in each room.

A room is a package with one module for each chapter that needs one, named like the chapter. A chapter's record
lists its rooms, and in each the names that other code looks up. Nothing is skipped in silence: what is listed and
is not there is an error, and so is what is there and is not listed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from msgspec import convert

from kvspec import chapters
from kvspec.chapters import CHAPTERS
from kvspec.chapters.record import Ability, Argument, Chapter, Dialect, Kind, Tensor, Value
from kvspec.errors import NotWhole
from kvspec.geometry import Config
from kvspec.tables import table


def modules(room: str, chapters: Collection[str] = CHAPTERS) -> dict[str, ModuleType]:
    """Give the modules of a room, or of some chapters in it, by chapter, in the order of the chapters.

    Raises NotWhole for a module that a chapter's record lists and that is not there, and for one that is there and
    is not listed.
    """
    # Not cached: systematic mutants execute the modules of the reference again, and must get their own.
    asked = (chapter for chapter in CHAPTERS if chapter in chapters)
    return {chapter: import_module(f"{room}.{chapter}") for chapter in asked if _has_module(room, chapter)}


def _has_module(room: str, chapter: str) -> bool:
    listed, there = _room(room) in RECORDS[chapter].rooms, find_spec(f"{room}.{chapter}") is not None
    if listed and not there:
        raise NotWhole(f"there is no module {room}.{chapter}, which {_listing(room, chapter)} lists")
    if there and not listed:
        raise NotWhole(f"{_listing(room, chapter)} does not list the module {room}.{chapter}, which is there")
    return listed


def _room(package: str) -> str:
    return package.rpartition(".")[2]


def _listing(room: str, chapter: str) -> str:
    return f"chapters/{chapter}.toml, [rooms] {_room(room)},"


def members(room: str, chapters: Collection[str] = CHAPTERS) -> dict[str, dict[str, Any]]:
    """Give what the records list of a room, by chapter and name. Raises NotWhole for what a module lacks."""
    return {chapter: _members(room, chapter, vars(module)) for chapter, module in modules(room, chapters).items()}


def _members(room: str, chapter: str, there: Mapping[str, Any]) -> dict[str, Any]:
    listed = RECORDS[chapter].rooms[_room(room)]
    for name in listed:
        if name not in there:
            raise NotWhole(f"{room}.{chapter} has no {name!r}, which {_listing(room, chapter)} lists")
    return {name: there[name] for name in listed}


def objects(room: str, name: str, chapters: Collection[str] = CHAPTERS) -> dict[str, Any]:
    """Give the object of this name from each module of a room that has it, by chapter; of some chapters, only their
    modules are read. Raises NotWhole for a module whose record lists the name and that lacks it, and the other way
    round."""
    for chapter, module in modules(room, chapters).items():
        if name in vars(module) and name not in RECORDS[chapter].rooms[_room(room)]:
            raise NotWhole(f"{_listing(room, chapter)} does not list {name!r}, which {room}.{chapter} has")
    return {chapter: found[name] for chapter, found in members(room, chapters).items() if name in found}


class ByKind(Mapping[str, Any]):
    """What a room has for each kind that it opens, by kind. A kind's module is read when it is first asked for."""

    def __init__(self, room: str) -> None:
        self._room, self._read = room, dict[str, Any]()

    def __getitem__(self, kind: str) -> Any:
        if kind not in self._read:
            (self._read[kind],) = members(self._room, (kind,))[kind].values()
        return self._read[kind]

    def __iter__(self) -> Iterator[str]:
        return (kind for kind, record in RECORDS.items() if record.rooms.get(_room(self._room)))

    def __len__(self) -> int:
        return sum(1 for _ in self)


_SHARED = table("kvspec.chapters", "arguments")
"""The arguments that operations share."""


def arguments(listed: Iterable[Any]) -> tuple[Argument, ...]:
    """Give the arguments that a record lists: see `arguments.toml`."""
    return tuple(argument for item in listed for argument in _meant(item))


def _meant(item: Any) -> Iterator[Argument]:
    """The arguments that an item of a list stands for: a shared one by its name, several, or one in full."""
    if isinstance(item, str):
        name = item.removesuffix("?")
        shared = _SHARED.get(name, {})
        own = {"name": name, "optional": item.endswith("?")}
        yield from arguments(shared if isinstance(shared, list) else [own | shared])
    elif "sizes" in item:
        more = {k: v for k, v in item.items() if k != "sizes"}
        yield from arguments({"name": name, "high": 1 << 16, "optional": True, **more} for name in item["sizes"])
    elif "flag" in item:
        yield Argument(item["flag"], low=0, high=1, default=0, needs=item.get("needs", ""))
    else:
        fields = {"default": None, **item} if item.get("optional") else item
        yield convert({k: v for k, v in fields.items() if k != "optional"}, Argument)


def record(chapter: str) -> Chapter:
    """Read the record of a chapter. Raises msgspec.ValidationError that names the field."""
    rows = dict(table("kvspec.chapters", chapter))
    for kind in ("fields", "operations", "abilities", "dialects", "values", "tensors", "columns"):
        key = "heading" if kind == "columns" else "name"
        rows[kind] = [{key: name, **row} for name, row in rows.get(kind, {}).items()]
    for operation in rows["operations"]:
        operation["arguments"] = arguments(operation.get("arguments", ()))
    return convert(rows, Chapter)


RECORDS: dict[str, Chapter] = {chapter: record(chapter) for chapter in CHAPTERS}
"""The records of the chapters."""

LETTERS: dict[str, str] = {
    chapters.LETTERS: chapters.GENERAL,
    **{record.letters: name for name, record in RECORDS.items()},
}
"""The chapters by the letters that begin their clause ids."""

_ONLY = {o.name: o.only for record in RECORDS.values() for o in record.operations}

_KINDS: dict[str, Kind] = {name: record.kind for name, record in RECORDS.items() if record.kind is not None}

KINDS = tuple(_KINDS)
"""The kinds that an adapter can open. The other chapters are about operations on these."""

CACHES = tuple(name for name, kind in _KINDS.items() if kind.sequence)
"""The kinds that are caches of one sequence (or of a uniform batch), which append and rewind."""

VALUES: dict[str, Value] = {value.name: value for record in RECORDS.values() for value in record.values}
"""The values of answers."""

TENSORS: dict[str, Tensor] = {tensor.name: tensor for record in RECORDS.values() for tensor in record.tensors}
"""The arrays of answers."""


def demand_chapters(names: Iterable[str], where: str) -> None:
    """Raise NotWhole for a name that is no chapter's."""
    for name in names:
        if name not in RECORDS:
            raise NotWhole(f"{where} names {name!r}, which is no chapter")


def observed_in(chapters: Iterable[str]) -> tuple[str, ...]:
    """Give what there is to see of caches that have these chapters."""
    return tuple(dict.fromkeys(o for chapter in chapters for o in RECORDS[chapter].observe))


OBSERVABLES = tuple(dict.fromkeys(("state", *observed_in(RECORDS))))
"""The observers of a session: the state after every operation; the history after an append; ..."""

HANDED_OUT = {**dict.fromkeys(("state", "batch", "table", "references"), "state"), "free": "free"}
HANDED_OUT |= {"positions": "positions"}
"""What pools and stores may not show, and what it is observed as."""


def opened(kind: str) -> Kind:
    """The record of a kind."""
    return _KINDS[kind]


def needed(kind: str) -> tuple[str, ...]:
    """Give the config fields that a kind requires and only some kinds have."""
    return _KINDS[kind].needs


BROUGHT: dict[str, str] = {
    field.name: name for name, record in RECORDS.items() if record.kind is None for field in record.fields
}
"""The chapters that open nothing and bring a field of a config, by the field: a cache may have it, and is then
theirs too."""


def fields_of(kind: str) -> tuple[str, ...]:
    """Give the config fields that this kind has and not every kind."""
    brought = (field for field, chapter in BROUGHT.items() if kind in RECORDS[chapter].on)
    return (*_KINDS[kind].needs, *_KINDS[kind].may, *brought)


def brought(config: Config) -> frozenset[str]:
    """Give the chapters that a config needs because it has a field of theirs."""
    return frozenset(chapter for field, chapter in BROUGHT.items() if getattr(config, field) is not None)


FIELDS_OF_SOME = tuple(dict.fromkeys(field for kind in KINDS for field in fields_of(kind)))
"""The fields of a config that only some kinds have."""


def has(kind: str, chapter: str, operation: str) -> bool:
    """Tell whether a kind has an operation of a chapter."""
    on = kind in RECORDS[chapter].on and kind in (_ONLY.get(operation) or (kind,))
    return kind == chapter or on or operation in _KINDS[kind].also


def fitted(kind: str, config: Config) -> Config:
    """Drop the config fields that belong to other kinds."""
    return config.changed(**_of_others(kind))


@cache
def _of_others(kind: str) -> Mapping[str, None]:
    """The config fields that belong to other kinds alone, each without a value."""
    own = fields_of(kind)
    return {field: None for field in FIELDS_OF_SOME if field not in own}


Needed = tuple[str, str]
"""A chapter, and an ability of it."""

CORE = ("append",)
"""What every cache of one sequence does."""


def abilities(chapter: str) -> dict[str, str]:
    """Give the abilities of a chapter that an adapter may lack: each by name, with one sentence."""
    sharing = KINDS if chapter in KINDS else (chapter,)
    operations = {
        o.name: o.says
        for name in sharing
        for o in RECORDS[name].operations
        if name == chapter or has(chapter, name, o.name)
    }
    named = {a.name: a.says for a in named_abilities(chapter)}
    return {name: says for name, says in (operations | named).items() if name not in CORE}


def named_abilities(chapter: str) -> tuple[Ability, ...]:
    """Give the abilities that records name. Every cache of one sequence has those of a growing cache too."""
    return tuple(a for each in _sharing(chapter) for a in RECORDS[each].abilities)


def _sharing(chapter: str) -> Iterable[str]:
    """A chapter, and for a cache of one sequence the growing one too: it has abilities and dialects of both."""
    return dict.fromkeys((CACHES[0], chapter) if chapter in CACHES else (chapter,))


DIALECTS: dict[str, Dialect] = {d.name: d for record in RECORDS.values() for d in record.dialects}
"""What a claim may say that engines do differently on purpose, by name."""


def dialects(chapter: str) -> tuple[str, ...]:
    """Name the dialects of a chapter. Every cache of one sequence has those of a growing cache too, and a kind may
    have others that its record names."""
    own = (d.name for each in _sharing(chapter) for d in RECORDS[each].dialects)
    return (*own, *(_KINDS[chapter].dialects if chapter in _KINDS else ()))
