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


def driver(folder: str | Path, vectors: bool = False, **settings: Any) -> Stepped:
    """The engine with a small pool; it says whether it takes vectors."""
    chosen = Settings(**{**SMALL, **settings})
    sizes = {name: getattr(chosen, theirs) for name, theirs in THEIRS.items()}
    model = _model(str(folder))
    without = {name for name, there in (("adapters", model.adapters), ("vectors", vectors)) if not there}
    declared = Declared("planted", can=frozenset(CAN) - without, **sizes)
    return Stepped(lambda: Engine(model, chosen), declared, model.tensors["model.embed_tokens.weight"])


def sized(wanted: Wanted) -> Stepped:
    """For `kvconform run --engine`: the engine with the sizes that are wanted."""
    asked = {THEIRS[name]: size for name, size in wanted.only(*THEIRS).sizes().items() if size}
    return driver(wanted.folder, **asked)


def small(wanted: Wanted) -> Stepped:
    """The same, of a size of its own."""
    return driver(wanted.folder)
