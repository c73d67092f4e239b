"""Loads the models of known deviations: planted bugs by their ids, and classes from files. The files are code that
runs in the process that judges."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from inspect import CO_VARARGS, isfunction
from types import FunctionType, ModuleType
from typing import Any

from kvconform.oracle.deviating import Deviating, root
from kvconform.runner.verdict.known import KnownDeviation
from kvspec.contract import Description
from kvspec.errors import BadInput
from kvspec.outside import did_you_mean

MODULE = "known_deviations_"
"""What the names of modules begin with that are made of files."""


def deviating(entries: Iterable[KnownDeviation]) -> Deviating:
    """What all these entries change of the oracles together. Raises BadInput that names what cannot be loaded."""
    models, references = list[type](), list[Any]()
    dialects: dict[str, dict[str, int | str]] = {}
    for entry in entries:
        for name in entry.models:
            made = _class(entry, name) if ".py:" in name else _planted(name)
            (models if isinstance(made, type) else references).append(made)
        for name, value in entry.dialect.items():
            chapter, _, own = name.rpartition(".")
            dialects.setdefault(chapter, {})[own] = value
    return Deviating(tuple(dict.fromkeys(models)), tuple(references), dialects)


def demand_claimed(entries: Iterable[KnownDeviation], adapter: Description) -> None:
    """Refuse a dialect of a chapter that the adapter does not claim. Raises BadInput."""
    for name in (n for entry in entries for n in entry.dialect):
        if name.rpartition(".")[0] not in adapter.chapters:
            raise BadInput(f"dialect {name}: {adapter.name} claims {', '.join(adapter.chapters)}")


def _planted(name: str) -> Any:
    """The reference with a planted bug."""
    from kvconform.bugs.known_bugs import known_bugs  # reads all of them, which few runs need

    bugs = known_bugs()
    if name not in bugs:
        hint = did_you_mean(name, bugs, 2) or "; `kvconform mutants --list` lists them"
        raise BadInput(f"model {name!r:.80}: no planted bug has this id{hint}; a class is FILE.py:NAME")
    return bugs[name].adapter()


def _class(entry: KnownDeviation, name: str) -> Any:
    """The class of a file; where it is over a class of the reference, the reference with it."""
    file, _, own = name.rpartition(":")
    module = _module(file, dict(entry.code)[file])
    made = getattr(module, own, None)
    if not isinstance(made, type):
        raise BadInput(f"model {name}: the file has no class {own}")
    try:
        over = root(made)
    except TypeError as e:
        raise BadInput(f"model {name}: {e}") from None
    _demand_arguments(made, name)
    if over.__module__.startswith("kvref.list_model"):
        return made
    from kvconform.bugs.planting import reference_with

    return reference_with(made)()


def _demand_arguments(made: type, name: str) -> None:
    """Refuse a method that cannot be called as the one in whose place it stands. Raises BadInput."""
    for number, own in enumerate(made.__mro__):
        for method, does in vars(own).items() if own.__module__.startswith(MODULE) else ():
            other = next((vars(base)[method] for base in made.__mro__[number + 1 :] if method in vars(base)), None)
            if isfunction(does) and isfunction(other) and not _takes(does, _needs(other)):
                takes, handed = (f"({', '.join(_needs(each))})" for each in (does, other))
                raise BadInput(f"model {name}: {own.__name__}.{method} takes {takes} where {handed} is handed in")


def _needs(method: FunctionType) -> tuple[str, ...]:
    """The arguments that a method must be given."""
    code, optional = method.__code__, len(method.__defaults__ or ())
    return code.co_varnames[1 : code.co_argcount - optional]


def _takes(method: FunctionType, handed: tuple[str, ...]) -> bool:
    """Whether a method can be given so many arguments."""
    most = math.inf if method.__code__.co_flags & CO_VARARGS else method.__code__.co_argcount - 1
    return len(_needs(method)) <= len(handed) <= most


@cache
def _module(file: str, code: str) -> ModuleType:
    """Run the text of a file as a module. Raises BadInput for what it raises."""
    module = ModuleType(f"{MODULE}{file.removesuffix('.py').replace('/', '_')}")
    try:
        exec(compile(code, file, "exec"), module.__dict__)
    except Exception as e:
        raise BadInput(f"model {file}: {type(e).__name__}: {e}") from None
    return module
