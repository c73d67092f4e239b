"""A tensor that a question cannot have asked for breaks the protocol; those of a correct cache never do."""

from __future__ import annotations

import pytest

from kvadapters.reference import Reference
from kvconform.oracle.trace_inputs import TraceInputs
from kvconform.worker.remote_session import foreign
from kvspec.operations.table import cache_of
from kvspec.reading.clauses import index
from kvspec.reading.examples import Example
from kvspec.registry import TENSORS
from kvspec.session.driver import Session

WORKED = [worked for clause in index().values() for worked in clause.examples]


def seen(worked: Example) -> set[str]:
    """What the reference shows on an example; each must be what its question can have."""
    inputs, session, shown = TraceInputs(worked.trace), Session(Reference()), set[str]()
    session.begin(worked.trace.kind, worked.trace.config)
    kinds = {"A": frozenset([worked.trace.kind])}
    for op in worked.trace.ops:
        given = inputs.make(op)
        if op["op"] == "open":
            assert given.opening is not None
            kinds[cache_of(op)] = kinds.get(cache_of(op), frozenset()) | {given.opening[0]}
        step = session.do(op, given)
        inputs.done(op, step.result)
        assert foreign(op["op"], kinds.get(cache_of(op), frozenset()), tuple(step.arrays)) == ""
        shown |= {name.partition(".")[0] for name in step.arrays}
    return shown


def test_every_answer_of_the_reference_can_be_had() -> None:
    assert set().union(*map(seen, WORKED)) == set(TENSORS)


@pytest.mark.parametrize(
    ("operation", "kind", "name"),
    [
        ("rewind", "growing", "history.k"),
        ("append", "growing", "view.v"),
        ("append", "ring", "state.0.k"),
        ("append", "ring", "history.3.v"),
        ("begin", "growing", "mask"),
        ("view", "growing", "output"),
        ("reset", "store", "history.k"),
        ("append", "growing", "batch.0.1.k"),
        ("append", "store", "host.0.k"),
        ("gather", "page", "page.k"),
        ("zero", "store", "saved.0.k"),
        ("copy", "copy", "rotated"),
    ],
)
def test_what_a_question_cannot_have_is_named(operation: str, kind: str, name: str) -> None:
    assert foreign(operation, frozenset([kind]), ("state.k", name)).endswith(f"cache cannot hold {name}")
