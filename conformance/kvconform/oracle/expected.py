"""What the list model expects of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import field

from kvspec.session.step import Step

if TYPE_CHECKING:
    from kvref.list_model.attention_bound import Output
    from kvref.list_model.rope import Turned
    from kvref.list_model.tokens import Scores
    from kvspec.contract import Description
    from kvspec.reading.examples import Example

SAVED = ("snapshot", "parent", "child")
"""Values that are the start, stop and bytes of a snapshot."""

NOT_SAID = ("retained", "buffered", "capacity", "bytes", "plan")
"""Values that the list model does not say: they follow from where rows are stored, or from their bytes."""


class Expected(Step):
    """What the list model expects of one step: values, and rows by name, not by slot. The `result` is `any` where
    it follows from where rows are stored."""

    sees: list[list[list[Scores | None]]] | None = None
    """`[sequence][head][query]` through the mask of this step, or None where there is none to look through, and for
    a query that is padding."""
    parts: tuple[str, ...] = ()
    """For each part of `sees` that has a rule of its own, such as a layer, the clause on what it shows."""
    plain: frozenset[int] = frozenset()
    """The serials of rows that must be read to the bit, in a form that rounds others."""
    folds: dict[str, list[int]] = field(default_factory=dict)
    """The serials of the tokens that states must be made of, in their order, by the arrays' names: fold.0."""
    rows: dict[str, list[int]] = field(default_factory=dict)
    """The serials that arrays must spell, in order, by the arrays' names without `.k` and `.v`: view, state.0."""
    between: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Values that follow in part from what the adapter chooses: the least and the most that are right."""
    outputs: Output | None = None
    """What the step's output should be, and how far from it an implementation may be."""
    rotated: Turned | None = None
    """What rows that the step rotated should be, and how far from it an implementation may be."""
    least: int | None = None
    """The rows of a cache that the next query may need."""
    handed_out: list[int] | None = None
    """The rows of the history, in any order, where a claim says which are there."""
    empty: str = "either"
    """What a view without rows is: none, zero rows, or either."""
    either: bool = False
    """Whether a refusal is as right, because nothing changes."""
    unsaid: str = ""
    """Where a known deviation leaves open what a cache holds: the result that the operation must have, or `any`."""
    either_way: bool = False
    """Whether it may as well be refused and change nothing, as the spec has it."""
    may_fail: frozenset[int] = frozenset()
    """For a run: the numbers of the operations before the last that may be refused or not."""


def does_otherwise(said: dict[str, Any], want: Step, example: Example, adapter: Description) -> bool:
    """Whether the oracle does not do what a line of the table says: it follows the adapter's declarations, on rows
    that the adapter takes."""
    if adapter.plain and adapter.supports(example.trace.config):
        return False
    if isinstance(want, Expected) and (want.either or want.unsaid):
        return True
    refused = str(said.get("result", said.get("offset", want.result))).startswith("refused")
    if want.result in ("ok", "refused") and refused != (want.result == "refused"):
        return True
    same = ("accepts", "hit", "free", "sequences", "offset")
    answers = ("can rewind", "can"), *((name, name) for name in same)
    return any(column in said and said[column] != want.values.get(name, said[column]) for column, name in answers)
