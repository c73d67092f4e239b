"""Walks and worked examples at real geometry, frozen with what the reference answers: those of the default seed by
a claim of every chapter. An adapter that claims less is given those of what it claims."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from kvconform.generate.frozen_covers import FOLDER, read_outcomes
from kvconform.generate.strategies.walk_moves import Scale
from kvspec import notation
from kvspec.trace import Frozen, Outcome, Trace, config_from_json


def name(scale: Scale, few: bool) -> str:
    """Name the walks at a scale, of a run of few traces or of any other."""
    return f"{scale.name}, few" if few else scale.name


def path(kind: str) -> Any:
    """Give the file of the frozen walks of a kind."""
    return FOLDER.joinpath(f"walk-{kind}.json")


@cache
def claimed(kind: str) -> frozenset[str]:
    """Give the chapters by which the frozen walks of a kind walk; none if no walks of it are frozen."""
    return frozenset(_document(kind)["chapters"]) if path(kind).is_file() else frozenset()


@cache
def _document(kind: str) -> Any:
    return json.loads(path(kind).read_text(encoding="utf-8"))


@cache
def read(kind: str, name: str) -> tuple[Trace, ...]:
    """Read the frozen walks of a kind by their name."""
    document = _document(kind)
    outcomes = read_outcomes(document["outcomes"])
    return tuple(_trace(kind, outcomes, *line) for line in document["walks"][name])


def _trace(kind: str, outcomes: dict[str, Outcome], config: Any, text: str, digest: str, ends: str) -> Trace:
    """An example may begin with a cache of another kind."""
    frozen, kind = Frozen(digest, tuple(map(outcomes.__getitem__, ends))), config.get("kind", kind)
    fields = {name: size for name, size in config.items() if name != "kind"}
    return Trace(kind, config_from_json(fields, kind), notation.operations(text), frozen)
