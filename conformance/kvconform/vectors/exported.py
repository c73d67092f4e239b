"""What an export adds to a frozen vector: tensors, the abilities an engine needs, and the rows that queries see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvconform.oracle.follow import seen
from kvconform.vectors.arrays import tensor_name
from kvconform.vectors.vector import Performed, performed, read, within
from kvref.list_model.tokens import Scores
from kvspec.errors import BadInput
from kvspec.geometry import Array

Document = dict[str, Any]

Sees = list[list[list[Scores | None]]]
"""What each query sees: `[sequence][head][query]`; None for a query that is padding."""


def exported(vector: Document) -> Document:
    """Add to a vector the kinds, dtypes and operations that it asks of an engine, and to its steps what queries
    see. Raises BadInput if it holds no trace."""
    opens = [opened for step in vector["steps"] if (opened := step.get("given", {}).get("opens"))]
    asks = {
        "kinds": {opened["kind"] for opened in opens},
        "dtypes": {opened["config"]["dtype"] for opened in opens},
        "operations": {step["op"]["op"] for step in vector["steps"]},
    }
    steps = {"steps": [*_with_sees(vector)]}
    return {**vector, **{name: sorted(each) for name, each in asks.items()}, **steps}


def _with_sees(vector: Document) -> Iterator[Document]:
    """Give the steps; where a history was made or masked, with the rows that each query sees."""
    first, *steps = vector["steps"]
    yield first
    masked = any("mask" in step["see"] for step in steps)
    for step, want in zip(steps, seen(read(vector).trace) if masked else [None] * len(steps), strict=True):
        if want is None or want.sees is None or "mask" not in step["see"]:
            yield step
        else:
            yield {**step, "see": {**step["see"], **_sees(want.sees)}}


def _sees(sees: Sees) -> Document:
    """Write serials for each sequence, head and query; one sequence or head stands for all that are alike. With
    the added scores, unless all are 0."""
    whole = _one_for_all([_one_for_all(heads) for heads in sees])
    serials = [[[None if query is None else _rows(query) for query in head] for head in heads] for heads in whole]
    scores = [[[_scores(query) for query in head] for head in heads] for heads in whole]
    scored = any(score for heads in scores for head in heads for query in head for score in query or ())
    return {"sees": serials} | ({"scores": scores} if scored else {})


def _scores(query: Scores | None) -> list[float] | None:
    return None if query is None else [query[serial] for serial in _rows(query)]


def _rows(query: Scores) -> list[int]:
    """The serials of the rows that it sees; without rows of zeros before position 0, which nobody appended."""
    return sorted(serial for serial in query if serial >= 0)


def _one_for_all(each: list[Any]) -> list[Any]:
    return each[:1] if all(other == each[0] for other in each) else each


def tensors(vector: Document) -> dict[str, Array]:
    """Compute the tensors that a vector names, on the reference. Raises BadInput where it gives others."""
    found: dict[str, Array] = {}
    if not any(map(_named, vector["steps"])):
        return found
    for i, (step, done) in enumerate(zip(vector["steps"], performed(read(vector).trace), strict=True)):
        for part, name, value in _named(step):
            array = _given(done).get(name) if part == "given" else done.step.arrays.get(name)
            bound = within(name, array, done.bound) if "within" in value else None
            for said, made in ((value["tensor"], array), (value.get("within", {}).get("tensor"), bound)):
                if said and (made is None or tensor_name(made) != said):
                    raise BadInput(
                        f"{vector['id']}: step {i} ({step['do']}): {name}: the reference gives another value"
                    )
                found |= {said: made} if made is not None else {}
    return found


def _named(step: Document) -> list[tuple[str, str, Document]]:
    """Give the arrays of a step that are told by tensors: given or seen, the name, and how it is written."""
    arrays = ((part, name, value) for part in ("given", "see") for name, value in step.get(part, {}).items())
    return [(part, name, value) for part, name, value in arrays if isinstance(value, dict) and "tensor" in value]


def _given(done: Performed) -> dict[str, Array | None]:
    keys, values = done.inputs.rows or (None, None)
    return {"rows.k": keys, "rows.v": values, "queries": done.inputs.queries}
