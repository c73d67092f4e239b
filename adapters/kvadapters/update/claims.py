"""What an adapter of an engine's functions claims: of each function the ability, or the chapter, that it shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvadapters.update.functions import Functions
from kvspec.operations.table import OF_KIND
from kvspec.registry import CACHES, LETTERS, abilities

USUAL: dict[str, int | str] = {"made": "before"}
"""What most engines do of the dialects of masks."""

FORMS = LETTERS["ROW"]
"""The chapter that is claimed where the limits name forms of rows."""

ROUNDS: dict[str, Any] = {"without": ["tree"], "rounds": "rows"}
"""The claim on rounds of an engine that has none."""

SHOWN = frozenset({"history", "offset", "bits", "view", "rewind", "ask", "free", "sees", "branch", "settle"})
"""Abilities that a function shows, so that they are claimed where it is given; others are named in `also`."""

BESIDE = frozenset({"mask", "snapshot"})
"""Chapters that are claimed beside the kind where their functions are given."""


def shown(kind: str, engine: Functions) -> dict[str, Any]:
    """Tell which abilities of a kind of cache the functions show; those that are false are not there."""
    given: dict[str, Any] = {"history": True, "offset": True, "bits": True, "view": engine.view}
    given |= {"rewind": engine.trim, "ask": engine.trim, "free": engine.reset}
    given |= {"keep": engine.keep} if engine.keep else {}
    if kind in CACHES:
        return given
    known, given = abilities(kind), given | {"sees": engine.mask}
    given |= {"branch": engine.commit, "settle": engine.commit} if engine.commit else {}
    return {name: there for name, there in given.items() if name in known}


def beside(kind: str, engine: Functions) -> dict[str, Any]:
    """Claim the chapters beside the kind whose functions are given."""
    saves = engine.state and engine.set_state and engine.trim and "restore" in OF_KIND[kind]
    each: dict[str, tuple[Any, dict[str, Any]]] = {
        "mask": (engine.mask and kind in CACHES, {"with": ["causal"], **USUAL}),
        "snapshot": (saves, {"with": ["snapshot", "restore"]}),
        "parcels": (engine.pack and engine.unpack, {"with": ["pack", "unpack"]}),
        "draft": (engine.commit and kind in CACHES, ROUNDS),
        "questions": (engine.accepts, {"with": ["askappend"]}),
        "mem": (engine.held, {"with": []}),
    }
    return {chapter: {"level": "visible", **claim} for chapter, (there, claim) in each.items() if there}


def declare(kind: str, chapters: dict[str, Any], dialect: Mapping[str, int | str]) -> None:
    """Add dialects to the claims on their chapters. Raises TypeError for one of a chapter that is not claimed."""
    for name, value in dialect.items():
        chapter, _, own = name.partition(".")
        if chapter not in chapters:
            named = f"the adapter claims {', '.join(chapters)}"
            raise TypeError(f"dialect {name}: {named if own else f'write its chapter too: {kind}.{name}'}")
        chapters[chapter][own] = value
