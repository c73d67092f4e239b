"""Gives simpler traces than one that fails: fewer operations, a plainer config, smaller caches, lower numbers."""

from __future__ import annotations

from collections.abc import Iterator

from kvconform.generate.shrink.numbers import SIZES, lower_reaching, with_operations
from kvconform.generate.shrink.operations import in_the_place_of, lower_numbers, shorter
from kvspec.geometry import OWN
from kvspec.operations.table import listed, numbers_in
from kvspec.trace import Trace

PLAIN = {"batch": 1, "kv_heads": 1, "dtype": "f16", "k_dim": 8, "v_dim": 6, "step": 256}
PLAIN |= {name: field.words[0] for name, field in OWN.items() if field.words}
"""The simplest value of each config field."""

EACH = ("lengths", "counts")
"""Arguments that list a number for each sequence."""


def simpler(trace: Trace) -> Iterator[Trace]:
    """Give simpler traces, the boldest simplification first."""
    n = len(trace.ops)
    yield from (with_operations(trace, fewer) for fewer in shorter(trace.ops, max(n // 2, min(n, 1))))
    yield from _plainer_configs(trace)
    yield from _smaller_caches(trace)
    yield from _fewer_layers(trace)
    yield from _fewer_sequences(trace)
    for i, op in enumerate(trace.ops):
        for others in in_the_place_of(op):
            yield with_operations(trace, (*trace.ops[:i], *others, *trace.ops[i + 1 :]))
    yield from _smaller_sizes(trace)


def _plainer_configs(trace: Trace) -> Iterator[Trace]:
    for name, plain in PLAIN.items():
        if getattr(trace.config, name) not in (plain, None):
            yield Trace(trace.kind, trace.config.changed(**{name: plain}), trace.ops)


def _smaller_sizes(trace: Trace) -> Iterator[Trace]:
    for name in (*SIZES, "layers"):
        size = getattr(trace.config, name)
        for lower in lower_numbers(size) if size else ():
            if lower:
                yield Trace(trace.kind, trace.config.changed(**{name: lower}), trace.ops)


def _smaller_caches(trace: Trace) -> Iterator[Trace]:
    """Lower a size together with every number that reaches it."""
    for name in SIZES:
        size = getattr(trace.config, name) or 0
        for less in (8, 4, 2, 1):
            if size > less:
                ops = tuple(lower_reaching(op, less, size) for op in trace.ops)
                yield Trace(trace.kind, trace.config.changed(**{name: size - less}), ops)


def _fewer_sequences(trace: Trace) -> Iterator[Trace]:
    """Drop a sequence of a padded batch, and its number from every list that has one for each sequence."""
    batch = trace.config.batch
    for s in range(batch) if trace.config.padding is not None and batch > 1 else ():
        ops = tuple({k: _without(s, v, batch) if k in EACH else v for k, v in op.items()} for op in trace.ops)
        yield Trace(trace.kind, trace.config.changed(batch=batch - 1), ops)


def _without(sequence: int, text: str, batch: int) -> str:
    numbers = numbers_in(text)
    return listed(numbers[:sequence] + numbers[sequence + 1 :]) if len(numbers) == batch else text


def _fewer_layers(trace: Trace) -> Iterator[Trace]:
    """Drop the last layer of a store, with the operations on it alone; or the first, and renumber the others."""
    layers = trace.config.layers or 0
    if layers < 2:
        return
    fewer = trace.config.changed(layers=layers - 1)
    yield Trace(trace.kind, fewer, tuple(op for op in trace.ops if op.get("layer") != layers - 1))
    others = [op for op in trace.ops if op.get("layer") != 0]
    moved = (op | {"layer": op["layer"] - 1} if op.get("layer", 0) > 0 else op for op in others)
    yield Trace(trace.kind, fewer, tuple(moved))
