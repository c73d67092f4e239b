"""Walks, made again by a claim of every chapter and answered by the reference, as `freeze_vectors` writes them."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

from kvconform.generate.frozen_covers import outcome_text, sign
from kvconform.generate.frozen_walks import name
from kvconform.generate.walks import SCALES, Walks
from kvspec import notation
from kvspec.contract import CHAPTERS
from kvspec.trace import Outcome, Trace
from tools.freeze_covers import answers

VERSION = 1
"""Version of the document."""

NOTES = (
    "The walks of a run at each scale, and of a run of few traces: the configuration, the operations, a hash of "
    "all that the reference answers, and how each operation ends: 0 stands for the first outcome, 1 for the second."
)
"""What the document says of itself."""


def compute(kind: str) -> str:
    """Make the walks of a kind, and have the reference answer them; give the text of the file to freeze."""
    outcomes, walks = dict[Outcome, str](), dict[str, list[Any]]()
    for scale, few in product(SCALES, (True, False)):
        made = Walks(kind, frozenset(CHAPTERS), scale, few=few).all()
        walks[name(scale, few)] = [_line(trace, outcomes) for trace in made]
    head = {
        "kvvectors": VERSION,
        "licence": "CC0-1.0",
        "kind": kind,
        "notes": NOTES,
        "chapters": sorted(CHAPTERS),
        "outcomes": list(map(outcome_text, outcomes)),
    }
    return json.dumps(head, indent=1)[:-2] + ',\n "walks": {\n' + ",\n".join(map(_text, walks.items())) + "\n}}\n"


def _line(trace: Trace, outcomes: dict[Outcome, str]) -> list[Any]:
    """Write a walk with what the reference answers; note its outcomes."""
    text = "; ".join(map(notation.words, trace.ops))
    frozen = answers(trace, notation.operations(text))
    ends = "".join(outcomes.setdefault(outcome, sign(len(outcomes))) for outcome in frozen.outcomes)
    return [trace.config.to_json(), text, frozen.digest, ends]


def _text(walks: tuple[str, list[Any]]) -> str:
    lines = ",\n".join("   " + json.dumps(line) for line in walks[1])
    return f"  {json.dumps(walks[0])}: [\n{lines}\n  ]"
