"""Capability honesty, in both directions: what is declared works, what is not is refused, and nothing changes."""

from __future__ import annotations

from collections.abc import Iterator

from kvconform.remote import RemoteSession
from kvconform.replay import Supplies
from kvconform.worker import Worker
from kvspec.contract import Description
from kvspec.geometry import CACHES, DTYPES, Config
from kvspec.notation import operation, sentence, words
from kvspec.session import Step
from kvspec.trace import Trace

TOO_MANY = 1 << 10
"""A batch and an append larger than declared limits are tried at one more than declared, up to this."""


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
    for profile in CACHES:
        config = Config(window=4) if profile == "ring" else Config()
        if profile not in adapter.profiles:
            yield Trace(profile, config), f"it does not declare the profile {profile}"
            continue
        config = config.changed(dtype=adapter.dtypes[0])
        yield from _dtypes(adapter, profile, config)
        yield from _operations(adapter, profile, config)
        yield from _limits(adapter, profile, config)


def _dtypes(adapter: Description, profile: str, config: Config) -> Iterator[tuple[Trace, str]]:
    for dtype in (d for d in DTYPES if d not in adapter.dtypes):
        yield Trace(profile, config.changed(dtype=dtype)), f"it does not declare the dtype {dtype}"


def _operations(adapter: Description, profile: str, config: Config) -> Iterator[tuple[Trace, str]]:
    last = {"mask": "mask causal", "snapshot": "snapshot s"}
    for missing in (p for p in last if p not in adapter.profiles):
        ops = (operation("append 2"), operation(last[missing]))
        yield Trace(profile, config, ops), f"it does not declare the profile {missing}"


def _limits(adapter: Description, profile: str, config: Config) -> Iterator[tuple[Trace, str]]:
    largest = adapter.largest_batch
    if largest is not None and largest < TOO_MANY:
        yield Trace(profile, config.changed(batch=largest + 1)), f"it declares batches of {largest} at most"
    largest = adapter.largest_append
    if largest is not None and largest < TOO_MANY:
        ops = (operation("append 1"), operation(f"append {largest + 1}"))
        yield Trace(profile, config, ops), f"it declares appends of {largest} rows at most"


def _last(adapter: Description, worker: Worker, trace: Trace) -> tuple[Step, str]:
    """The last step (or the opening), and how the lengths changed over it."""
    session, supplies = RemoteSession(worker, ()), Supplies(trace)
    step = session.begin(trace.profile, trace.config)
    before = step.values
    for op in trace.ops:
        before, given = step.values, supplies.give(op)
        step = session.do(op, given)
        supplies.done(op, step.result)
    offsets = before.get("offset"), step.values.get("offset")
    return step, f"offset {offsets[0]} became {offsets[1]}" if trace.ops and offsets[0] != offsets[1] else ""
