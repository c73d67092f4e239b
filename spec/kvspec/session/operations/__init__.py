"""Performs each operation of a trace on caches that follow the contract: one module for each chapter.

Each module has a table `DO`, and `look` if its chapter opens a kind. `DO` maps operations to functions of a
session, the cache, the operation, the step to fill, and the inputs; `LOOK` maps kinds of cache to functions that
observe one after every operation.
"""

from __future__ import annotations

from collections.abc import Callable

from kvspec.errors import NotWhole
from kvspec.operations.table import CHAPTER_OF
from kvspec.registry import KINDS, objects

Do = Callable[..., None]

DO: dict[str, Do] = {name: do for each in objects(__name__, "DO").values() for name, do in each.items()}
LOOK: dict[str, Do] = objects(__name__, "look")


def _demand_all() -> None:
    """Raise NotWhole for an operation of a chapter that nothing performs, and for a kind that nothing observes."""
    for name in sorted({*DO} ^ {*CHAPTER_OF}):
        chapter = CHAPTER_OF.get(name, "")
        lacks = f"{__name__}.{chapter}: DO has no {name!r}, an operation of chapters/{chapter}.toml"
        raise NotWhole(lacks if chapter else f"{__name__}: DO has {name!r}, which is no operation of a chapter")
    for kind in sorted({*LOOK} ^ {*KINDS}):
        raise NotWhole(f"{__name__}.{kind}: `look` belongs to each kind of cache, and to nothing else")


_demand_all()
