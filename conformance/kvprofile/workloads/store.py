"""The store of all layers, and its batch of sequences."""

from __future__ import annotations

from typing import Any

from kvprofile.case import Case
from kvprofile.operation import Job, Work
from kvprofile.subject import Subject
from kvspec import traffic
from kvspec.geometry import Config


def _config(case: Case) -> Config:
    return case.config(layers=case.model.layers, max_len=case.context)


def _layers(subject: Subject, n: int) -> list[tuple[int, ...]]:
    """Give the shapes of n rows of every layer, `[layers, H, n, dim]`."""
    return [(subject.case.model.layers, *shape[1:]) for shape in subject.shapes(n)]


def append(subject: Subject) -> Job:
    """Append n rows to every layer."""
    case, model = subject.case, subject.case.model
    stores = [subject.open("store") for _ in range(subject.turns(case.context * model.layers))]
    sources = subject.several(_layers(subject, case.rows))

    def do(i: int) -> None:
        stores[i % len(stores)].append(*sources[i % len(sources)])

    def reset() -> None:
        for store in stores:
            store.reset()

    return Job(do, len(stores) * (case.context // case.rows), reset)


def zero(subject: Subject) -> Job:
    """Overwrite every row with zeros."""
    store = subject.open("store")
    return Job(lambda i: store.zero())


def batched(subject: Subject) -> Any:
    """Make a store with a batch of `case.batch` empty sequences."""
    store = subject.open("store")
    store.batch(subject.case.batch)
    return store


def _tokens(subject: Subject) -> list[tuple[Any, ...]]:
    """Make rows `[layers, m, kv_heads, dim]` to rotate through."""
    case, model = subject.case, subject.case.model
    return subject.several([(model.layers, case.batch, model.kv_heads, model.dim)] * 2)


def step(subject: Subject) -> Job:
    """Append one row to every sequence in every layer."""
    store, sources = batched(subject), _tokens(subject)
    return Job(lambda i: store.step(*sources[i % len(sources)]), subject.case.context, store.reset_batch)


def replay(subject: Subject) -> Job:
    """Replay a captured step."""
    store, sources = batched(subject), _tokens(subject)
    captured = store.capture()
    return Job(lambda i: captured.replay(*sources[i % len(sources)]), subject.case.context, store.reset_batch)


def scatter(subject: Subject) -> Job:
    """Copy the store's rows into the place of one sequence."""
    case, store = subject.case, batched(subject)
    store.append(*subject.arrays(_layers(subject, case.rows)))
    return Job(lambda i: store.scatter(i % case.batch, case.rows))


def _held(case: Case) -> int:
    config = _config(case)
    sequences = 1 if case.batch == 1 else 1 + case.batch
    return case.model.layers * case.context * config.row_bytes * sequences


def _stepped(case: Case) -> traffic.Traffic:
    return traffic.layered(_config(case), 1, case.batch)


def _rows(case: Case) -> traffic.Traffic:
    return traffic.layered(_config(case), case.rows)


WORK = {
    "store append": Work(_config, _rows, _held, append),
    "zero": Work(_config, lambda case: traffic.zeroed(_config(case)), _held, zero),
    "batch step": Work(_config, _stepped, _held, step),
    "captured step": Work(_config, _stepped, _held, replay),
    "scatter": Work(_config, _rows, _held, scatter),
}
