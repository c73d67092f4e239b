"""Every operation of every kind of cache at the geometries of released models: the fewest worked examples."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property

from kvconform.generate.claims.other_kinds import moved
from kvconform.generate.real_geometry import WITH, Geometry, Met, at, beyond, options
from kvconform.generate.variations import LOOKS, blind
from kvconform.oracle.follow import ModelledTrace
from kvspec.chapters import CHAPTERS
from kvspec.operations.arguments import allowed_words
from kvspec.operations.table import (
    ARGUMENTS,
    OF_KIND,
    OPEN,
    OPERATIONS,
    RUN,
    Operation,
    argument,
    cache_of,
    chapters_of,
    parts_of,
)
from kvspec.reading.clauses import index
from kvspec.reading.examples import Example
from kvspec.registry import brought
from kvspec.trace import Trace, opening

Operations = frozenset[str]

OWN = {"kv_heads", "k_dim", "v_dim"}
"""Arguments of an operation that has a geometry of its own."""

NO_OPTIONS = {
    *("layer", "sequence", "fill", "queries", "input", "resident", "most"),
    *("values", "rows", "batch", "kv_heads", "k_dim", "v_dim"),
    *("q_dim", "q_rows", "q_batch", "out_readonly"),
}
"""Arguments that are no options: where rows are, what they hold, limits, and sizes that are wrong on purpose."""

SOME = 32
"""Rows of a page, or of a store's layer, in traces that were moved from another kind."""


def called(op: Operation) -> str:
    """Name what an operation does: on all there is, on a layer, on the first sequence, or on another one."""
    layer, sequence = op.get("layer"), op.get("sequence")
    one = "" if sequence is None else " sequence" if sequence else " first sequence"
    return f"{op['op']}{'' if layer is None else ' layer'}{one}"


def options_of(op: Operation) -> Iterator[str]:
    """Name the options that an operation is given: a word with the option, a text with what it begins with. What a
    cache is opened with is named by its config."""
    for each in ARGUMENTS[op["op"]].values() if not OPERATIONS[op["op"]].config else ():
        said = op.get(each.name, each.default)
        if not each.required and said != each.default and each.name not in NO_OPTIONS:
            text = allowed_words(each) or each.holds == "scaling"
            word = f"={str(said).partition(':')[0]}" if text else ""
            yield f"{WITH} {op['op']} {each.name}{word}"


@dataclass(frozen=True)
class _Shown:
    """A trace, and the operations that caches of a kind do in it."""

    trace: Trace
    operations: Operations

    @cached_property
    def chapters(self) -> frozenset[str]:
        """The chapters that it takes."""
        return frozenset().union({self.trace.kind}, *map(chapters_of, self.trace.ops))

    @cached_property
    def is_done(self) -> bool:
        """Tell whether nothing in the trace is refused: a run is done only as a whole."""
        from kvconform.generate.covers import walk  # frozen traces need no reference

        return all(step.result == "ok" for step in walk(self.trace, self.trace.ops).steps)

    def worth(self, wanted: Collection[str]) -> float:
        """How much it shows of what is wanted, for its length."""
        return len(self.operations & set(wanted)) / (2 + len(self.trace.ops))


@cache
def traces(
    kind: str, geometry: Geometry, done: Operations = frozenset(), chapters: frozenset[str] = frozenset(CHAPTERS)
) -> tuple[Trace, ...]:
    """Give traces at a geometry in which caches of a kind do each of their operations. Leave out operations that
    other traces have `done`, and traces that take other chapters. One trace is observed only at its end."""
    left = [each for each in _candidates(kind) if each.chapters <= chapters]
    wanted = {name for each in left for name in each.operations if name.split()[0] not in {RUN.name, *done}}
    given, own = list[Trace](), list[Trace]()
    while left and (best := max(left, key=lambda each: each.worth(wanted))).worth(wanted):
        left.remove(best)
        trace = at(best.trace, geometry)
        if trace and (shows := best.operations & wanted & {*_done(trace), *options(kind, trace.config)}):
            given.append(trace)
            own += [trace] if trace.kind == kind and best.is_done and _length(trace) else []
            wanted -= shows
    return (*given, blind(max(own, key=_length) if own else _longest(kind, geometry, chapters)))


def calls(kind: str) -> Operations:
    """Give what worked examples on caches of a kind show: operations, and options."""
    return frozenset().union(*(each.operations for each in _candidates(kind))) - {RUN.name}


def _length(trace: Trace) -> int:
    """Count the operations of a trace, but those that open caches or only look."""
    return sum(op["op"] not in (OPEN.name, *LOOKS) for op in trace.ops)


def _longest(kind: str, geometry: Geometry, chapters: frozenset[str]) -> Trace:
    """Give the worked example of most operations that fits a geometry. It begins with a cache of this kind, and
    nothing in it is refused. Raises StopIteration where none fits."""
    examples = (each for each in _candidates(kind) if each.trace.kind == kind and each.chapters <= chapters)
    longest = sorted(examples, key=lambda each: _length(each.trace), reverse=True)
    return next(trace for each in longest if each.is_done and (trace := at(each.trace, geometry)))


def met(traces: Iterable[Trace], kind: str) -> Met:
    """Give the boundaries of geometry that caches of a kind lie beyond in these traces."""
    return frozenset().union(*(found for trace in traces for each, found in caches(trace) if each == kind))


def caches(trace: Trace) -> Iterator[tuple[str, Met]]:
    """Give the kind of each cache of a trace, and the boundaries that it lies beyond."""
    batches = max((part.get("m", 0) for op in trace.ops for part in parts_of(op)), default=0)
    opens = (opening(trace, op) for op in trace.ops if op["op"] == OPEN.name)
    yield from ((kind, beyond(config, batches)) for kind, config in ((trace.kind, trace.config), *opens))


@cache
def _candidates(kind: str) -> tuple[_Shown, ...]:
    """Worked examples on caches of a kind; for operations that none of them shows, those of other kinds, moved."""
    own = [_Shown(e.trace, found) for e, each in _examples() if (found := each.get(kind))]
    lacks = set(OF_KIND[kind]).difference(*({name.split()[0] for name in each.operations} for each in own))
    beside = _Shown(replace(own[0].trace, ops=({"op": OPEN.name, "cache": "B"},)), frozenset({OPEN.name}))
    return (*own, *(each for each in (*_others(kind, lacks), beside) if each.operations & lacks))


@cache
def _examples() -> tuple[tuple[Example, Mapping[str, Operations]], ...]:
    """Give the worked examples, each with the operations that caches of each kind do in it. Leave out those whose
    rows have a form: other widths may not fit it."""
    each = (example for clause in index().values() for example in clause.examples)
    return tuple((example, _operations(example)) for example in each if not brought(example.trace.config))


def _others(kind: str, lacks: Collection[str]) -> Iterator[_Shown]:
    for example, done_by in _examples():
        shows = done_by.get(example.trace.kind, frozenset()) & set(lacks)
        if shows and example.trace.kind != kind and (trace := moved(example.trace, kind)):
            few = {name: SOME for name in ("max_len", "page_size") if getattr(trace.config, name)}
            trace = replace(trace, config=trace.config.changed(**few))
            yield _Shown(trace, frozenset(_done(trace)))  # another kind may refuse what this one took


def _done(trace: Trace) -> Iterator[str]:
    """Name the operations of a trace that are not refused, and their options."""
    following = ModelledTrace(trace)
    for op in trace.ops:
        for part in parts_of(op) if following.follow(op).result == "ok" else ():
            yield called(part)
            yield from options_of(part)


def _operations(example: Example) -> dict[str, Operations]:
    """Give the operations that caches of each kind do in an example, with their options, and what the first cache
    has if it is given rows. Leave out operations that are refused or that name a geometry of their own."""
    kinds, found, filled = {"A": example.trace.kind}, dict[str, Operations](), set[str]()
    for op, row in zip(example.trace.ops, example.rows, strict=True):
        if op["op"] == OPEN.name:
            kinds[cache_of(op)] = argument(op, "kind") or example.trace.kind
        said = str([*row.said.values()])
        if row.said and "refused" not in said and "unsupported" not in said:
            for part in (part for part in parts_of(op) if not OWN & set(part) and cache_of(part) in kinds):
                kind = kinds[cache_of(part)]
                found[kind] = found.get(kind, frozenset()).union({called(part)}, options_of(part))
                filled |= {cache_of(part)} if "fill" in ARGUMENTS[part["op"]] else set()
    kind, config = example.trace.kind, example.trace.config
    return found | ({kind: found[kind].union(options(kind, config))} if "A" in filled else {})
