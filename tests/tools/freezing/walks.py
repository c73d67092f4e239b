"""Walks and worked examples at real geometry, made again by a claim of every chapter and answered by the reference,
as `freeze_vectors` writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from kvconform.generate import lives
from kvconform.generate.frozen_covers import outcome_text, sign
from kvconform.generate.frozen_traces import LIVES, name
from kvconform.generate.real_geometry import GEOMETRIES
from kvconform.generate.strategies.plan_moves import Ops
from kvconform.generate.strategies.walk_moves import SCALES, WALKED
from kvconform.generate.walks import Walks, left_over_by
from kvspec import notation
from kvspec.contract import CHAPTERS
from kvspec.trace import Outcome, Trace
from tools.freezing.covers import answers

VERSION = 1
"""Version of the document."""

NOTES = (
    "The walks of a run at each scale, and of a run of few traces, the worked examples at each geometry, and the "
    "lives at real sizes: the configuration, the operations, a hash of all that the reference answers, and how "
    "each operation ends: 0 is the first outcome, 1 the second."
)
"""What the document says of itself."""


def compute(kind: str) -> str:
    """Make the walks of a kind, and its worked examples at real geometry, and have the reference answer them; give
    the text of the file to freeze."""
    outcomes = dict[Outcome, str]()
    walks = {name: [_line(kind, trace, outcomes) for trace in made] for name, made in _made(kind).items()}
    said = {"kind": kind, "notes": NOTES, "chapters": sorted(CHAPTERS)}
    head = {**said, "outcomes": list(map(outcome_text, outcomes))}
    return document(head, "walks", "{\n" + ",\n".join(map(listed, walks.items())) + "\n}")


def _made(kind: str) -> dict[str, Sequence[Trace]]:
    """Make the traces of a kind, by their names."""
    all_, each = frozenset(CHAPTERS), product(SCALES, (True, False))
    walks = {name(scale, few): [*Walks(kind, all_, scale, few=few).all()] for scale, few in each}
    walked = [walks[name(scale, few=True)] for scale in WALKED]
    walks |= {geometry.name: left_over_by(walked, kind, geometry, all_) for geometry in GEOMETRIES}
    return walks | {LIVES: lives.told(kind)}


def document(head: Mapping[str, Any], name: str, body: str) -> str:
    """Write a document of frozen traces: what it says of itself, then the traces, under a name, as JSON."""
    whole = {"kvvectors": VERSION, "licence": "CC0-1.0", **head}
    return json.dumps(whole, indent=1)[:-2] + f',\n "{name}": {body}}}\n'


def _line(kind: str, trace: Trace, outcomes: dict[Outcome, str]) -> list[Any]:
    """Write a trace with what the reference answers; note its outcomes."""
    text, other = "; ".join(map(notation.words, trace.ops)), {"kind": trace.kind} if trace.kind != kind else {}
    return [trace.config.to_json() | other, text, *answered(trace, notation.operations(text), outcomes)]


def answered(trace: Trace, ops: Ops, outcomes: dict[Outcome, str]) -> tuple[str, str]:
    """Have the reference answer operations; give the hash of its answers, and a sign for each outcome. Notes new
    outcomes."""
    frozen = answers(trace, ops)
    return frozen.digest, "".join(outcomes.setdefault(end, sign(len(outcomes))) for end in frozen.outcomes)


def listed(named: tuple[str, list[Any]]) -> str:
    """Write traces under their name: each in a line."""
    lines = ",\n".join("   " + json.dumps(line) for line in named[1])
    return f"  {json.dumps(named[0])}: [\n{lines}\n  ]"
