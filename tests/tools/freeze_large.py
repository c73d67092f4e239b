"""What the reference answers to the large traces of the default seed, as `freeze_vectors` writes it."""

from __future__ import annotations

import json

from kvconform.generate.amounts import SEED
from kvconform.generate.frozen_covers import outcome_text, sign
from kvconform.generate.large import sizes
from kvspec.notation import from_sentence
from kvspec.trace import Outcome
from tools.freeze_covers import answers

VERSION = 1
"""Version of the document."""

NOTES = (
    "The large traces of a run, each in a sentence, with a hash of all that the reference answers, and how each "
    "operation ends: 0 stands for the first outcome, 1 for the second."
)
"""What the document says of itself."""


def compute(chapter: str) -> str | None:
    """Have the reference answer the large traces of a chapter; give the text of the file to freeze, or None if it
    has none."""
    outcomes, lines = dict[Outcome, str](), list[str]()
    for sentence in sentences(chapter):
        trace = from_sentence(sentence)
        frozen = answers(trace, trace.ops)
        ends = "".join(outcomes.setdefault(outcome, sign(len(outcomes))) for outcome in frozen.outcomes)
        lines.append("  " + json.dumps([sentence, frozen.digest, ends]))
    head = {
        "kvvectors": VERSION,
        "licence": "CC0-1.0",
        "chapter": chapter,
        "notes": NOTES,
        "outcomes": list(map(outcome_text, outcomes)),
    }
    return json.dumps(head, indent=1)[:-2] + ',\n "traces": [\n' + ",\n".join(lines) + "\n]}\n" if lines else None


def sentences(chapter: str) -> list[str]:
    """Give the sentences of a chapter's large traces."""
    return [s.sentence(boundary, SEED) for s in sizes() if s.chapter == chapter for boundary in s.boundaries]
