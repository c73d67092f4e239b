"""Makes an adapter for an engine's cache in a few lines, from a function that most engines have: `update(keys,
values)`.

The adapter translates and answers nothing by itself: it checks no range and no shape, and what the engine raises
goes on to the harness. It claims exactly what it is given; see `spec/README.md` for abilities.

    Adapter = from_update(
        "my-engine",
        kind="ring",
        make=lambda config: engine.RotatingCache(size=config.window),
        update=lambda cache, keys, values: cache.update_and_fetch(keys, values),
        length=lambda cache: cache.offset,
        trim=lambda cache, n: cache.trim(n),
    )
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

from kvadapters.arrays import LIBRARIES
from kvadapters.update.adapter import UpdateAdapter
from kvadapters.update.cache import Saved, UpdateCache
from kvadapters.update.functions import Functions, Make, Update

__all__ = ["Functions", "Saved", "UpdateAdapter", "UpdateCache", "from_update"]


def from_update(
    name: str,
    *,
    kind: str,
    make: Make,
    update: Update,
    also: Collection[str] = ("batch",),
    without: Collection[str] = (),
    dialect: Mapping[str, int | str] | None = None,
    said: Mapping[str, Any] | None = None,
    arrays: str = "",
    cache: type[UpdateCache] = UpdateCache,
    **functions: Any,
) -> UpdateAdapter:
    """Make an adapter of an engine's functions: those of `Functions`, by name.

    `kind` is `growing`, `ring`, `bounded` or `sink`; or `layers`, with the `cache` of `kvadapters.layered`, whose
    `update` and `mask` take the number of a layer too. `also` names abilities that no function shows. `batch` is
    several sequences, and `zero` is appends of no rows. `scribble`: the caller may overwrite arrays that it handed
    in or got out. `residual`: the newest rows stay as they are beside a form. Where the limits in `said` name
    forms, the chapter on them is claimed too. `without` names abilities that are not claimed although their
    function is given, such as `ask`. `dialect` says where the engine differs from the spec's default, by chapter
    and name, such as `ring.rewind`. `said` holds more fields of the description: version, dtypes, limits, known.
    The adapter opens nothing that its dtypes and limits exclude. `arrays` names a library whose arrays the engine
    takes, torch or mlx; it stands for `to_engine` and `from_engine`. Raises TypeError for an unknown function or
    library, and for a dialect of a chapter that is not claimed.
    """
    if arrays:
        if arrays not in LIBRARIES:
            raise TypeError(f"arrays: unknown library {arrays!r}; known: {', '.join(LIBRARIES)}")
        made = import_module(f"kvadapters.arrays.{arrays}")
        functions = {"to_engine": made.to_engine, "from_engine": made.from_engine, **functions}
    if unknown := functions.keys() - {known.name for known in fields(Functions)}:
        said_by = "what the adapter describes, such as limits, goes into `said`"
        raise TypeError(f"unknown function {', '.join(sorted(unknown))}; {said_by}")
    adapter = UpdateAdapter(
        name, kind, Functions(make, update, **functions), also, without, dialect or {}, said or {}, cache
    )
    adapter.describe()
    return adapter
