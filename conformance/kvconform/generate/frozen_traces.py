"""Traces frozen with what the reference answers, beside those of covers and large ones: walks, worked examples and
explored traces. Walks and explored traces are those of the default seed for a claim of every chapter. For an
adapter that claims less they are made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from kvconform.generate.frozen_covers import FOLDER, read_answers, read_operation, read_outcomes
from kvconform.generate.real_geometry import GEOMETRIES, Geometry, at
from kvconform.generate.strategies.walk_moves import Scale
from kvspec import notation
from kvspec.reading.examples import Example
from kvspec.trace import Frozen, Outcome, Trace, config_from_json

LIVES = "lives"
"""The name of the lives of a kind among its walks: see `kvconform.generate.lives`."""


def name(scale: Scale, few: bool) -> str:
    """Name the walks at a scale, of a run of few traces or of any other."""
    return f"{scale.name}, few" if few else scale.name


def walks_path(kind: str) -> Any:
    """Give the file of the frozen walks of a kind."""
    return FOLDER.joinpath(f"walk-{kind}.json")


@cache
def claimed(kind: str) -> frozenset[str]:
    """Give the chapters by which the frozen walks of a kind walk, or none if no walks of it are frozen."""
    return frozenset(_document(kind)["chapters"]) if walks_path(kind).is_file() else frozenset()


@cache
def _document(kind: str) -> Any:
    return json.loads(walks_path(kind).read_text(encoding="utf-8"))


@cache
def walks(kind: str, name: str) -> tuple[Trace, ...]:
    """Read the frozen walks of a kind by their name."""
    document = _document(kind)
    outcomes = read_outcomes(document["outcomes"])
    return tuple(_trace(kind, outcomes, *line) for line in document["walks"][name])


def _trace(
    kind: str, outcomes: dict[str, Outcome], config: Any, text: str, digest: str, ends: str, states: Any = ()
) -> Trace:
    """Read a frozen trace. One may begin with a cache of another kind."""
    kind = config.get("kind", kind)
    frozen = read_answers(outcomes, digest, ends, states)
    fields = {name: size for name, size in config.items() if name != "kind"}
    ops = tuple(map(read_operation, notation.separated(text)))
    return Trace(kind, config_from_json(fields, kind), ops, frozen)


DRAWN = "drawn"
"""Traces as they were drawn; variations of them have names of their own."""


@dataclass(frozen=True)
class Explored:
    """What an exploration draws, as far as it is frozen."""

    drawn: tuple[Trace, ...] = ()
    varied: Mapping[str, Mapping[int, Trace]] = field(default_factory=dict)
    """Variations, by their names and by the places of the traces that were drawn."""


NONE = Explored()
"""Where nothing is frozen."""


def path(chapter: str) -> Any:
    """Give the file of what is frozen of a chapter."""
    return FOLDER.joinpath(f"traces-{chapter}.json")


@cache
def _read(chapter: str) -> tuple[dict[str, Any], dict[str, Outcome]]:
    if not path(chapter).is_file():
        return {"examples": [], "explored": {}}, {}
    document = json.loads(path(chapter).read_text(encoding="utf-8"))
    return document, read_outcomes(document["outcomes"])


@cache
def _examples(chapter: str) -> Mapping[str, Frozen]:
    document, outcomes = _read(chapter)
    return {id_: read_answers(outcomes, digest, ends) for id_, digest, ends in document["examples"]}


def example(chapter: str, worked: Example) -> Trace:
    """Give the trace of a worked example of a chapter, with what the reference answers where that is frozen."""
    return replace(worked.trace, frozen=_examples(chapter).get(worked.id))


def example_at(worked: Example, geometry: Geometry) -> Trace | None:
    """Give the trace of a worked example at a geometry, with what the reference answers where that is frozen; None
    where it cannot be done there."""
    trace = at(worked.trace, geometry)
    known = _examples(worked.trace.kind) if geometry in GEOMETRIES else {}
    return trace and replace(trace, frozen=known.get(name_at(worked, geometry)))


def name_at(worked: Example, geometry: Geometry) -> str:
    """Name a worked example at a geometry."""
    return f"{worked.id} {geometry.name}"


@cache
def explored(chapter: str, name: str, number: int) -> Explored:
    """Give the first `number` traces that an exploration draws for an adapter that claims all, and variations of
    them. Give none where fewer are frozen."""
    document, outcomes = _read(chapter)
    frozen = dict(document["explored"].get(name, {}))
    drawn = [_trace(chapter, outcomes, *line) for line in frozen.pop(DRAWN, ())[:number]]
    if len(drawn) < number:
        return NONE
    varied = {
        form: {place: _trace(chapter, outcomes, *line) for place, *line in lines if place < number}
        for form, lines in frozen.items()
    }
    return Explored(tuple(drawn), varied)


def drawn_by(chapter: str) -> str:
    """Give the release of Hypothesis that drew what is frozen of a chapter: another one may draw other traces."""
    return str(_read(chapter)[0].get("hypothesis", ""))
