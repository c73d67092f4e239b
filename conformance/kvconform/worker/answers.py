"""What the answer to a question can hold: a tensor that the question cannot have asked for breaks the protocol."""

from __future__ import annotations

from functools import lru_cache

from kvspec.registry import CACHES, TENSORS, opened


@lru_cache(maxsize=4096)
def foreign(operation: str, kinds: frozenset[str], names: tuple[str, ...]) -> str:
    """Say which of these tensors the answer to an operation on a cache of one of these kinds cannot hold; empty if
    it can hold all."""
    odd = next((name for name in names if not _can_hold(operation, kinds, name)), None)
    return "" if odd is None else f"the answer to {operation} on a {'/'.join(kinds)} cache cannot hold {odd}"


def _can_hold(operation: str, kinds: frozenset[str], name: str) -> bool:
    what, *which = name.removesuffix(".k").removesuffix(".v").split(".")
    if kinds <= set(CACHES) and any(map(str.isdigit, which)):
        return False  # a cache of one sequence shows no layers or sequences by number
    tensor = TENSORS[what]
    return tensor.always or operation in tensor.after or any(what in opened(kind).answers for kind in kinds)
