"""The check of honesty: an adapter refuses everything that it does not claim, and nothing changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from kvconform.checks.check import Check
from kvconform.generate.claims.fit_to_adapter import fitted
from kvconform.oracle.trace_inputs import TraceInputs
from kvconform.runner.under_test import AdapterUnderTest
from kvconform.worker.client import Worker
from kvconform.worker.remote_session import RemoteSession
from kvspec.contract import CHAPTERS, Description
from kvspec.geometry import DTYPES, Config
from kvspec.notation import operation, sentence, words
from kvspec.operations.table import OF_KIND, chapters_of
from kvspec.registry import CACHES, KINDS, RECORDS, named_abilities, opened
from kvspec.session.step import Step
from kvspec.trace import Trace

if TYPE_CHECKING:
    from kvconform.generate.claims.ability_traces import AbilityTrace

CHAPTER = "honesty"

TOO_MANY = 1 << 10
"""A batch and an append larger than declared limits are tried at one more than declared, up to this."""


def checks() -> Iterator[Check]:
    """One check of everything that is not claimed."""
    yield Check("honesty", CHAPTER, frozenset(), judge)


def judge(under_test: AdapterUnderTest) -> None:
    """Try everything that the adapter does not claim."""
    under_test.tally.judged += 1
    said = undeclared(under_test.adapter, under_test.worker)
    under_test.tally.problems += [f"adapter: {message}" for message in said]


def undeclared(adapter: Description, worker: Worker) -> Iterator[str]:
    """What the adapter does though it does not declare it, one sentence each. Its own error may be a refusal."""
    refusals = ("unsupported", "refused", *(("error",) if adapter.refusals == "own" else ()))
    for trace, why in (*_attempts(adapter), *_beyond_limits(adapter)):
        found, changed = _last(adapter, worker, trace)
        if found.result == "absent":
            continue  # it did not come so far; the other sources say why
        if found.result not in refusals:
            yield f"{why}, yet `{sentence(trace)}` ended with {found.result} {found.message}".strip()
        elif changed:
            yield f"{why} and refuses, but `{words(trace.ops[-1])}` changed the cache: {changed}"


def _attempts(adapter: Description) -> Iterator[tuple[Trace, str]]:
    for kind in KINDS:
        config = Config(**opened(kind).tried)
        if kind not in adapter.chapters:
            yield Trace(kind, config), f"it does not declare the chapter {kind}"
            continue
        config = _config(adapter, kind)
        yield from _dtypes(adapter, kind, config)
        yield from _operations(adapter, kind, config)
    yield from _abilities(adapter)


def _beyond_limits(adapter: Description) -> Iterator[tuple[Trace, str]]:
    """Attempts at more than the adapter declares."""
    for kind in (kind for kind in KINDS if kind in adapter.chapters):
        config = _config(adapter, kind)
        yield from _limits(adapter, kind, config)
        yield from _rows(adapter, kind, config)
        yield from _sizes(adapter, kind, config)


def _config(adapter: Description, kind: str) -> Config:
    """A config within the limits."""
    config = Config(**opened(kind).tried, dtype=adapter.dtypes[0])
    return adapter.widened(config.changed(kv_heads=min(config.kv_heads, adapter.most_heads or config.kv_heads)))


def _dtypes(adapter: Description, kind: str, config: Config) -> Iterator[tuple[Trace, str]]:
    for dtype in (d for d in DTYPES if d not in adapter.dtypes):
        yield Trace(kind, config.changed(dtype=dtype)), f"it does not declare the dtype {dtype}"


def _operations(adapter: Description, kind: str, config: Config) -> Iterator[tuple[Trace, str]]:
    for missing in (c for c in CHAPTERS if c not in adapter.chapters):
        for probe in (p for p in RECORDS[missing].probes if kind in (p.kinds or KINDS)):
            ops = tuple(map(operation, probe.operations))
            yield Trace(kind, config, ops), f"it does not declare the chapter {missing}"


def _abilities(adapter: Description) -> Iterator[tuple[Trace, str]]:
    """Attempts at each ability that a declared chapter goes without: the first trace that fits all else."""
    for chapter, claim in adapter.chapters.items():
        for name in sorted(n for n in claim.without if _can_be_refused(chapter, n)):
            more = replace(claim, without=claim.without - {name})
            able = replace(adapter, chapters={**adapter.chapters, chapter: more})
            shown = (t for t in _that_show(chapter, name) if not t.refused and able.able(t.takes))
            fit = fitted((t.trace for t in shown), able)
            for trace in islice((t for t in fit if t not in fitted((t,), adapter)), 1):
                yield trace, f"it leaves out {chapter}.{name}"


def _that_show(chapter: str, name: str) -> Sequence[AbilityTrace]:
    """The traces that show an ability."""
    from kvconform.generate.claims.ability_traces import ability_traces  # an adapter that has all needs none

    return ability_traces().get((chapter, name), ())


def _can_be_refused(chapter: str, name: str) -> bool:
    """Whether a caller asks for it by an operation, an argument, a config or a mask. What rows hold, how many there
    are and by how many a buffer grows is no request. An engine does not see that its arrays are overwritten."""
    named = next((a for a in named_abilities(chapter) if a.name == name), None)
    contents = named is not None and (named.clauses or named.argument in ("fill", "n", "step"))
    return name != "scribble" and not contents and bool(_that_show(chapter, name))


def _limits(adapter: Description, kind: str, config: Config) -> Iterator[tuple[Trace, str]]:
    largest = adapter.largest_batch
    if largest is not None and largest < TOO_MANY and kind in CACHES:
        yield Trace(kind, config.changed(batch=largest + 1)), f"it declares batches of {largest} at most"
    if largest is not None and largest < TOO_MANY:
        larger = operation(f"batch {largest + 1} {largest + 1}")
        if larger["op"] in OF_KIND[kind] and chapters_of(larger) <= set(adapter.chapters):
            yield Trace(kind, config, (operation("append 1"), larger)), f"it declares batches of {largest} at most"
    largest = adapter.largest_append
    if largest is not None and largest < TOO_MANY and "append" in OF_KIND[kind]:
        texts = [*opened(kind).begin, "append 1", f"append {largest + 1}"]
        yield Trace(kind, config, tuple(map(operation, texts))), f"it declares appends of {largest} rows at most"


def _rows(adapter: Description, kind: str, config: Config) -> Iterator[tuple[Trace, str]]:
    """One row more than a cache is given, in appends that are within the limits."""
    most, begin = adapter.most_rows, list(map(operation, opened(kind).begin))
    if most is None or most >= TOO_MANY or "append" not in OF_KIND[kind]:
        return
    claim = adapter.chapters[kind]
    at_once = min(most, *(n for n in (adapter.largest_append, claim.largest_append(config)) if n), most)
    sizes = [at_once] * (most // at_once) + ([most % at_once] if most % at_once else [])
    ops = (*begin, *(operation(f"append {n}") for n in (*sizes, 1)))
    yield Trace(kind, config, tuple(ops)), f"it declares that a cache is given {most} rows at most"


def _sizes(adapter: Description, kind: str, config: Config) -> Iterator[tuple[Trace, str]]:
    """Give a window that is too small, too many heads, and widths that are no multiples or not equal."""
    least, wider = adapter.least_window, config.k_dim + 1
    if config.window is not None and least > 1:
        yield Trace(kind, config.changed(window=least - 1)), f"it declares windows of {least} or more"
    if adapter.most_heads is not None and adapter.most_heads < TOO_MANY:
        other = config.changed(kv_heads=adapter.most_heads + 1)
        yield Trace(kind, other), f"it declares {adapter.most_heads} heads at most"
    if adapter.multiple > 1:
        values = wider if adapter.equal else config.v_dim
        other = config.changed(k_dim=wider, v_dim=values)
        yield Trace(kind, other), f"it declares widths that are multiples of {adapter.multiple}"
    if adapter.equal:
        other = config.changed(k_dim=config.k_dim + adapter.multiple)
        yield Trace(kind, other), "it declares that keys and values have one width"


def _last(adapter: Description, worker: Worker, trace: Trace) -> tuple[Step, str]:
    """The last step (or the opening), and how lengths changed over it."""
    session, trace_inputs = RemoteSession(worker, ["offset"]), TraceInputs(trace)
    step = session.begin(trace.kind, trace.config)
    before = step.values
    for op in trace.ops:
        before, inputs = step.values, trace_inputs.make(op)
        step = session.do(op, inputs)
        trace_inputs.done(op, step.result)
    both = [name for name in ("offset", "lengths", "sequences") if name in before and name in step.values]
    changed = [
        f"{name} {before[name]} became {step.values[name]}" for name in both if before[name] != step.values[name]
    ]
    return step, ", ".join(changed)
