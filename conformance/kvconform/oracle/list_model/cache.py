"""The list model of a growing cache or a ring: `kvref.list_model.caches`."""

from __future__ import annotations

from typing import Any

from kvconform.oracle.list_model.expected import Expected
from kvref.list_model.caches import History
from kvspec import masks
from kvspec.errors import Refused
from kvspec.geometry import Config
from kvspec.operations.table import Operation, cache_of
from kvspec.session.step import Inputs


def look(lists: Any, cache: History, step: Expected, which: str = "") -> None:
    """The offset."""
    step.values[f"offset{which}"] = cache.offset
    if not which:
        step.cache = cache


def append(lists: Any, cache: History, op: Operation, step: Expected, given: Inputs) -> None:
    """New tokens, and what their queries see."""
    take(lists, cache, op)
    if not cache.in_round:
        seen_through(cache, step, masks.CAUSAL)


def take(lists: Any, cache: History, op: Operation) -> None:
    """The tokens of an operation that appends. Raises Refused for rows of another geometry."""
    if op["n"] and not fits(op, cache.config):
        raise Refused("RING-13" if cache.ring else "GROW-10", "rows of another geometry")
    first = lists.trace_inputs.book.next
    cache.append(list(range(first, first + op["n"])))


def fits(op: Operation, config: Config) -> bool:
    """Whether an operation says nothing else of its rows than the cache's geometry."""
    names = ("batch", "kv_heads", "k_dim", "v_dim", "dtype")
    same = all(op.get(n) in (None, getattr(config, n)) for n in names)
    return same and op.get("values") in (None, op["n"])


def seen_through(cache: History, step: Expected, logical: masks.Logical) -> None:
    """What each query of the append just before sees through a mask."""
    heads = max([1, *(p.array.shape[1] for p in logical if isinstance(p, masks.Explicit))])
    step.sees = [
        [cache.sees(logical, sequence, head) for head in range(heads)] for sequence in range(cache.config.batch)
    ]


def mask(lists: Any, cache: History, op: Operation, step: Expected, given: Inputs) -> None:
    """What each query sees through this mask; of a round, on the cache's layer there."""
    assert given.logical is not None
    looked = cache if op.get("round") is None else lists.rounds[op["round"]].masked(cache_of(op))
    looked.sees(given.logical)  # refuses what cannot be looked through at all
    seen_through(looked, step, given.logical)


def view(lists: Any, cache: History, op: Operation, step: Expected, given: Inputs) -> None:
    """What can be read without writing."""
    step.view = cache.view()


def ask(lists: Any, cache: History, op: Operation, step: Expected, given: Inputs) -> None:
    """Whether a rewind would be accepted."""
    step.values["can"] = cache.can_rewind(op["to"])


def rewind(lists: Any, cache: History, op: Operation, step: Expected, given: Inputs) -> None:
    """Asked first, then done."""
    step.values["can"] = cache.can_rewind(op["to"])
    cache.rewind(op["to"])


def free(lists: Any, cache: History, op: Operation, step: Expected, given: Inputs) -> None:
    """Return to never written."""
    cache.free()


def scribble(lists: Any, cache: Any, op: Operation, step: Expected, given: Inputs) -> None:
    """Nothing the caller does to its arrays shows."""
    step.values["intact"] = True


DO = {
    "mask": mask,
    "view": view,
    "ask": ask,
    "rewind": rewind,
    "free": free,
    "scribble": scribble,
}
MODELS = {"growing": History, "ring": History}
LOOK = {"growing": look, "ring": look}
APPEND = {"growing": append, "ring": append}
