"""What the reference answers to the large traces of the default seed, as `freeze_vectors` writes it."""

from __future__ import annotations

import json

from kvconform.generate.amounts import SEED
from kvconform.generate.frozen_covers import outcome_text
from kvconform.generate.large.boundaries import sizes
from kvspec.notation import from_sentence
from kvspec.trace import Outcome
from tools.freezing.walks import answered, document

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
        lines.append("  " + json.dumps([sentence, *answered(trace, trace.ops, outcomes)]))
    head = {"chapter": chapter, "notes": NOTES, "outcomes": list(map(outcome_text, outcomes))}
    return document(head, "traces", "[\n" + ",\n".join(lines) + "\n]") if lines else None


def sentences(chapter: str) -> list[str]:
    """Give the sentences of a chapter's large traces."""
    return [s.sentence(boundary, SEED) for s in sizes() if s.chapter == chapter for boundary in s.boundaries]
