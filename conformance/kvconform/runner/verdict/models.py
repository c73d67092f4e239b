"""Loads the models of known deviations: planted bugs by their ids, and classes from files. The files are code that
runs in the process that judges."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from types import ModuleType
from typing import Any

from kvconform.oracle.deviating import Deviating, root
from kvconform.runner.verdict.known import KnownDeviation
from kvspec.contract import Description
from kvspec.errors import BadInput
from kvspec.outside import did_you_mean


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
    from kvconform.runner.verdict.model_methods import demand_arguments  # few runs have models of files

    file, _, own = name.rpartition(":")
    made = getattr(_module(file, dict(entry.code)[file]), own, None)
    if not isinstance(made, type):
        raise BadInput(f"model {name}: the file has no class {own}")
    try:
        over = root(made)
    except TypeError as e:
        raise BadInput(f"model {name}: {e}") from None
    demand_arguments(made, name)
    from kvconform.bugs.planting import reference_with

    return made if over.__module__.startswith("kvref.list_model") else reference_with(made)()


@cache
def _module(file: str, code: str) -> ModuleType:
    """Run the text of a file as a module. Raises BadInput for what it raises."""
    module = ModuleType(f"known_deviations_{file.removesuffix('.py').replace('/', '_')}")
    try:
        exec(compile(code, file, "exec"), module.__dict__)
    except Exception as e:
        raise BadInput(f"model {file}: {type(e).__name__}: {e}") from None
    return module
