"""Performs each operation of a trace on caches that follow the contract: one module for each chapter.

Each module has a table `DO`, and `look` if its chapter opens a kind. `DO` maps operations to functions of a
session, the cache, the operation, the step to fill, and the inputs; `LOOK` maps kinds of cache to functions that
observe one after every operation.
"""

from __future__ import annotations

from collections.abc import Callable

from kvspec.registry import KINDS, found, merged

Do = Callable[..., None]

DO: dict[str, Do] = merged(__name__, "DO")
LOOK: dict[str, Do] = {kind: look for kind, look in found(__name__, "look").items() if kind in KINDS}
