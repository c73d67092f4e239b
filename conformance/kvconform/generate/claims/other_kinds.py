"""Moves a trace to another kind of cache, so that an example of a shared chapter shows it on every kind."""

from __future__ import annotations

from kvspec import notation
from kvspec.errors import BadInput
from kvspec.geometry import Config, valid
from kvspec.operations.table import OF_KIND, Operation, cache_of
from kvspec.registry import opened
from kvspec.trace import Trace, from_json

SHARED = ("batch", "kv_heads", "k_dim", "v_dim", "dtype")
"""Fields of a config that every kind has, and that the moved trace keeps."""


def moved(trace: Trace, kind: str) -> Trace | None:
    """Give the same operations on one cache of another kind, or None if that kind lacks one of them. A trace of
    several caches is not moved, nor one that names a part of a cache, nor one whose config is refused."""
    if not all(_fits(op, kind) for op in trace.ops) or not valid(trace.config):
        return None
    config = Config(**opened(kind).tried).changed(**{name: getattr(trace.config, name) for name in SHARED})
    begin = tuple(map(notation.operation, opened(kind).begin))
    try:
        return from_json(Trace(kind, config, (*begin, *trace.ops)).to_json())
    except BadInput:  # it is too much for that kind to replay
        return None


def _fits(op: Operation, kind: str) -> bool:
    """Whether an operation is one on a whole cache A, and one that the kind has."""
    return cache_of(op) == "A" and op["op"] in OF_KIND[kind] and not {"layer", "sequence"} & set(op)
