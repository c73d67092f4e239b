"""Capability honesty, in both directions: what is declared works, what is not is refused, and nothing changes."""

from __future__ import annotations

from collections.abc import Iterator

from kvconform.oracle.trace_inputs import TraceInputs
from kvconform.worker.client import Worker
from kvconform.worker.remote_session import RemoteSession
from kvspec.contract import Description
from kvspec.geometry import DTYPES, Config
from kvspec.operations.notation import operation, sentence, words
from kvspec.registry import CACHES, KINDS
from kvspec.session.step import Step
from kvspec.trace import Trace

TOO_MANY = 1 << 10
"""A batch and an append larger than declared limits are tried at one more than declared, up to this."""


OPENED = {
    "growing": Config(),
    "ring": Config(window=4),
    "copy": Config(capacity=4, layout="token"),
    "store": Config(layers=2, max_len=TOO_MANY + 2),
    "page": Config(page_size=TOO_MANY, pages=2),
    "bucket": Config(layers=1, bounds="2-4"),
}
"""What is opened of each kind."""

OPERATIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "mask": (CACHES, ("append 2", "mask causal")),
    "snapshot": (CACHES, ("append 2", "snapshot s")),
    "draft": (CACHES, ("append 2", "speculate r A")),
    "batch": (("store",), ("append 2", "batch 2")),
    "mem": (KINDS, ("plan 1",)),
    "rope": (KINDS, ("rotate 1 1",)),
    "residency": ((*CACHES, "store"), ("append 1", "append 1 resident=1")),
    "attention": (CACHES, ("append 1", "attend 1")),
}
"""For each chapter that is no kind: the kinds it is tried on, and operations of which the last is its own."""

MORE: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "mem": (KINDS, ("fit 1000000",)),
    "residency": (("copy",), ("copy 1 0", "copy 1 0 resident=1")),
    "attention": (("store",), ("append 1", "attend 1 layer=0")),
}
"""Others of the same."""

PAGED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "residency": (("page",), ("admit", "append 1", "append 1 resident=1")),
    "attention": (("page",), ("admit", "append 1", "attend 1")),
}
"""The same on paged caches, which need a sequence first."""


def undeclared(adapter: Description, worker: Worker) -> Iterator[str]:
    """What the adapter does though it does not declare it, one sentence each."""
    for trace, why in _attempts(adapter):
        found, changed = _last(adapter, worker, trace)
        if found.result == "absent":
            continue  # it did not come so far; the other sources say why
        if found.result not in ("unsupported", "refused"):
            yield f"{why}, yet `{sentence(trace)}` ended with {found.result} {found.message}".strip()
        elif changed:
            yield f"{why} and refuses, but `{words(trace.ops[-1])}` changed the cache: {changed}"


def _attempts(adapter: Description) -> Iterator[tuple[Trace, str]]:
    for kind, config in OPENED.items():
        if kind not in adapter.chapters:
            yield Trace(kind, config), f"it does not declare the chapter {kind}"
            continue
        config = config.changed(dtype=adapter.dtypes[0])
        yield from _dtypes(adapter, kind, config)
        yield from _operations(adapter, kind, config)
        yield from _limits(adapter, kind, config)


def _dtypes(adapter: Description, kind: str, config: Config) -> Iterator[tuple[Trace, str]]:
    for dtype in (d for d in DTYPES if d not in adapter.dtypes):
        yield Trace(kind, config.changed(dtype=dtype)), f"it does not declare the dtype {dtype}"


def _operations(adapter: Description, kind: str, config: Config) -> Iterator[tuple[Trace, str]]:
    for missing, (kinds, ops) in (*OPERATIONS.items(), *MORE.items(), *PAGED.items()):
        if missing not in adapter.chapters and kind in kinds:
            yield Trace(kind, config, tuple(map(operation, ops))), f"it does not declare the chapter {missing}"


def _limits(adapter: Description, kind: str, config: Config) -> Iterator[tuple[Trace, str]]:
    largest = adapter.largest_batch
    if largest is not None and largest < TOO_MANY and kind in CACHES:
        yield Trace(kind, config.changed(batch=largest + 1)), f"it declares batches of {largest} at most"
    if largest is not None and largest < TOO_MANY and kind == "store" and "batch" in adapter.chapters:
        ops = (operation("append 1"), operation(f"batch {largest + 1} {largest + 1}"))
        yield Trace(kind, config, ops), f"it declares batches of {largest} at most"
    largest = adapter.largest_append
    if largest is not None and largest < TOO_MANY and kind not in ("copy", "bucket"):
        texts = [*(["admit"] if kind == "page" else []), "append 1", f"append {largest + 1}"]
        yield Trace(kind, config, tuple(map(operation, texts))), f"it declares appends of {largest} rows at most"


def _last(adapter: Description, worker: Worker, trace: Trace) -> tuple[Step, str]:
    """The last step (or the opening), and how lengths changed over it."""
    session, trace_inputs = RemoteSession(worker, ()), TraceInputs(trace)
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
