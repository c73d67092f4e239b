"""The store of all layers, and its batch of sequences."""

from __future__ import annotations

from typing import Any

from kvconform.profiling.case import ALWAYS, Case, Job, Operation
from kvconform.profiling.random_rows import noise, turns
from kvconform.profiling.subject import Bench
from kvspec import traffic
from kvspec.geometry import Config


def _config(case: Case) -> Config:
    return case.config(layers=case.model.layers, max_len=case.context)


def append(bench: Bench) -> Job:
    """n rows into every layer."""
    case, model = bench.case, bench.case.model
    stores = [bench.open("store") for _ in range(bench.turns(case.context * model.layers))]
    sources = bench.several(case.rows, bench.config.changed(batch=model.layers))

    def do(i: int) -> None:
        stores[i % len(stores)].append(*sources[i % len(sources)])

    def reset() -> None:
        for store in stores:
            store.reset()

    return Job(do, len(stores) * (case.context // case.rows), reset)


def zero(bench: Bench) -> Job:
    """Every row becomes zeros."""
    store = bench.open("store")
    return Job(lambda i: store.zero(), ALWAYS)


def batched(bench: Bench) -> Any:
    """A store with a batch of `case.batch` sequences, all empty."""
    store = bench.open("store")
    store.batch(bench.case.batch)
    return store


def _tokens(bench: Bench) -> list[tuple[Any, ...]]:
    """Rows `[layers, m, kv_heads, dim]` that take turns."""
    case, model = bench.case, bench.case.model
    shape = model.layers, case.batch, model.kv_heads, model.dim
    count = turns(bench.memory, model.layers * case.batch * bench.config.row_bytes, 64)
    return [bench.placed(*(noise(shape, case.dtype, 2 * i + part) for part in range(2))) for i in range(count)]


def step(bench: Bench) -> Job:
    """One row for every sequence in every layer."""
    store, sources = batched(bench), _tokens(bench)
    return Job(lambda i: store.step(*sources[i % len(sources)]), bench.case.context, store.reset_batch)


def replay(bench: Bench) -> Job:
    """The same, captured before."""
    store, sources = batched(bench), _tokens(bench)
    captured = store.capture()
    return Job(lambda i: captured.replay(*sources[i % len(sources)]), bench.case.context, store.reset_batch)


def scatter(bench: Bench) -> Job:
    """The store's rows into the place of one sequence."""
    case, store = bench.case, batched(bench)
    store.append(*bench.rows(case.rows, 0, bench.config.changed(batch=case.model.layers)))
    return Job(lambda i: store.scatter(i % case.batch, case.rows), ALWAYS)


def _held(case: Case) -> int:
    config = _config(case)
    sequences = 1 if case.batch == 1 else 1 + case.batch
    return case.model.layers * case.context * config.row_bytes * sequences


def _stepped(case: Case) -> traffic.Traffic:
    return traffic.layered(_config(case), 1, case.batch)


def _rows(case: Case) -> traffic.Traffic:
    return traffic.layered(_config(case), case.rows)


BATCH = ("store", "batch")
OPERATIONS = (
    Operation("store append", "rows into every layer", ("store",), _config, _rows, _held, append),
    Operation("zero", "every row zeros", ("store",), _config, lambda c: traffic.zeroed(_config(c)), _held, zero),
    Operation("batch step", "a row for every sequence and layer", BATCH, _config, _stepped, _held, step),
    Operation("captured step", "the same, captured", BATCH, _config, _stepped, _held, replay),
    Operation("scatter", "the store's rows into a sequence", BATCH, _config, _rows, _held, scatter),
)
