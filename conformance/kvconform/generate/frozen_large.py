"""Large traces of the default seed with what the reference answers, frozen by their sentences."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from kvconform.generate.frozen_covers import FOLDER, read_answers, read_outcomes
from kvspec.notation import from_sentence
from kvspec.trace import Frozen, Trace


def path(chapter: str) -> Any:
    """Give the file of what is frozen of a chapter's large traces."""
    return FOLDER.joinpath(f"large-{chapter}.json")


@cache
def read(chapter: str) -> Mapping[str, Frozen]:
    """Read what the reference answers to a chapter's large traces, by sentence; nothing where nothing is frozen."""
    if not path(chapter).is_file():
        return {}
    document = json.loads(path(chapter).read_text(encoding="utf-8"))
    outcomes = read_outcomes(document["outcomes"])
    return {s: read_answers(outcomes, digest, ends) for s, digest, ends in document["traces"]}


def trace(chapter: str, sentence: str) -> Trace:
    """Read a large trace of a chapter from its sentence, with what the reference answers where that is frozen."""
    return replace(from_sentence(sentence), frozen=read(chapter).get(sentence))
