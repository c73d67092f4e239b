"""Worked examples, and what a run explores, answered by the reference, as `freeze_vectors` writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any

from kvadapters.reference import Reference
from kvconform.generate import frozen_traces
from kvconform.generate.amounts import CLAUSE_TRACES, QUICK_TRACES, SEED, TRACES
from kvconform.generate.frozen_covers import outcome_text
from kvconform.generate.frozen_traces import DRAWN
from kvconform.generate.real_geometry import GEOMETRIES, at
from kvconform.generate.registry import explorations
from kvconform.generate.strategies import sample
from kvconform.generate.strategies.exploration import Exploration
from kvconform.generate.variations import VARIATIONS, Variation
from kvconform.judge import trial
from kvconform.oracle.reference import claims
from kvspec import notation
from kvspec.chapters.record import METERED
from kvspec.contract import CHAPTERS
from kvspec.reading.clauses import examples_of, index
from kvspec.reading.columns import column
from kvspec.reading.examples import Example
from kvspec.session.driver import Session
from kvspec.trace import Outcome, Trace
from tools.freezing.walks import answered, document, listed

NOTES = (
    "The worked examples of a chapter by their ids, the traces that each exploration draws, and variations of "
    "them, each behind the place of the trace it is of: the configuration, the operations, a hash of all that the "
    "reference answers, and how each operation ends: 0 is the first outcome, 1 the second. Numbers tell the states "
    "of traces as they were drawn."
)
"""What the document says of itself."""

AMOUNTS = (QUICK_TRACES, CLAUSE_TRACES, TRACES)
"""Traces that an exploration draws in a quick run, in one on single clauses, and in any other. Of these numbers all
variations are frozen."""

LONGEST = 1 << 16
"""Characters of the longest trace that is frozen: one with a larger mask costs more to read than to judge."""

Outcomes = dict[Outcome, str]


def compute(chapter: str) -> str:
    """Have the reference answer a chapter's worked examples and what a run explores in it; give the text of the
    file to freeze."""
    outcomes = Outcomes()
    examples = [[e.id, *answered(e.trace, e.trace.ops, outcomes)] for e in examples_of(chapter) if not _counts(e)]
    examples += [[name, *answered(trace, trace.ops, outcomes)] for name, trace in _at_geometries(chapter)]
    explored = {
        e.name: found for e in explorations([chapter]).get(chapter, ()) if (found := _explored(e, outcomes))
    }
    head = {"chapter": chapter, "notes": NOTES, "hypothesis": version("hypothesis")}
    head |= {"outcomes": list(map(outcome_text, outcomes)), "examples": examples}
    return document(head, "explored", "{\n" + ",\n".join(map(_text, explored.items())) + "\n}")


def _at_geometries(kind: str) -> Iterator[tuple[str, Trace]]:
    """The worked examples on a kind of cache at each geometry, by their names there: a run on single clauses judges
    them."""
    for worked in (e for clause in index().values() for e in clause.examples if e.trace.kind == kind):
        for geometry in GEOMETRIES:
            if trace := at(worked.trace, geometry):
                yield frozen_traces.name_at(worked, geometry), trace


def _counts(example: Example) -> bool:
    """Whether the table says what operations cost: the hash of an answer leaves out costs, which have bounds."""
    return any(column(heading).of in METERED or heading in METERED for row in example.rows for heading in row.said)


def _explored(exploration: Exploration, outcomes: Outcomes) -> Mapping[str, list[list[Any]]]:
    """What an exploration draws, with the states of each; variations, each behind the place of what it is of.
    Nothing where a trace that was drawn is long."""
    drawn = sample.some(exploration.drawn(CHAPTERS), exploration.number(TRACES), SEED)
    if any(map(is_long, drawn)):
        return {}
    lines = [[*_line(t, outcomes), states] for t, states in zip(drawn, _states(drawn), strict=True)]
    return {DRAWN: lines} | {
        form.name: [
            [place, *_line(varied, outcomes)]
            for place in places(form, exploration)
            if not is_long(varied := form.of(drawn[place]))
        ]
        for form in VARIATIONS
    }


def places(form: Variation, exploration: Exploration) -> list[int]:
    """Tell which of the traces that an exploration draws are judged in a form, in runs of the usual amounts."""
    return sorted({at for amount in AMOUNTS for at in form.places(exploration.number(amount))})


def is_long(trace: Trace) -> bool:
    """Tell whether a trace is too long to be frozen."""
    return len(text(trace)) > LONGEST


def _text(explored: tuple[str, Mapping[str, list[Any]]]) -> str:
    """Write what an exploration draws, and the variations."""
    name, forms = explored
    return f" {json.dumps(name)}: {{\n" + ",\n".join(map(listed, forms.items())) + "\n }"


def text(trace: Trace) -> str:
    """Write the operations of a trace."""
    return "; ".join(map(notation.words, trace.ops))


def _line(trace: Trace, outcomes: Outcomes) -> list[Any]:
    """Write a trace with what the reference answers; note its outcomes."""
    words, said = text(trace), {**trace.config.to_json(), "kind": trace.kind}
    return [said, words, *answered(trace, notation.operations(words), outcomes)]


def _states(traces: Sequence[Trace]) -> Iterable[list[int]]:
    """The states that the reference passes through in each trace, numbered in the order in which they are met."""
    numbers = dict[Any, int]()
    for trace in traces:
        seen = trial.on(trace, partial(Session, Reference()), claims(), watch=True)
        yield [numbers.setdefault(state, len(numbers)) for state in seen.states]
