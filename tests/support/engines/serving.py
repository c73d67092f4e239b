"""The serving engine of the examples behind a driver."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from kvadapters.serving.driver import CAN, Declared, Wanted
from kvadapters.serving.stepped import Stepped
from serving_engine import Engine, Settings
from serving_engine.model import Model

SMALL = {"block_size": 4, "blocks": 20, "chunk": 8, "budget": 12, "sequences": 4, "drafts": 3}
"""An engine in which everything happens soon."""

THEIRS = {"block": "block_size", "blocks": "blocks", "chunk": "chunk", "drafts": "drafts", "sequences": "sequences"}
"""Sizes of an engine, and what its settings call them."""


@cache
def _model(folder: str) -> Model:
    return Model(Path(folder))


def driver(folder: str | Path, **settings: Any) -> Stepped:
    """The engine with a small pool."""
    chosen = Settings(**{**SMALL, **settings})
    sizes = {name: getattr(chosen, theirs) for name, theirs in THEIRS.items()}
    more = set() if _model(str(folder)).adapters else {"adapters"}
    declared = Declared("planted", can=frozenset(CAN) - more, **sizes)
    return Stepped(lambda: Engine(_model(str(folder)), chosen), declared)


def sized(wanted: Wanted) -> Stepped:
    """For `kvconform run --engine`: the engine with the sizes that are wanted."""
    asked = {THEIRS[name]: size for name, size in wanted.only(*THEIRS).sizes().items() if size}
    return driver(wanted.folder, **asked)


def small(wanted: Wanted) -> Stepped:
    """The same, of a size of its own."""
    return driver(wanted.folder)
