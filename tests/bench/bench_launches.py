"""The host's share of work on an NVIDIA GPU: Python a launch and a replay, over a driver that does nothing.

Needs no GPU and measures none: what a driver takes comes on top.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
from tabulate import tabulate

from kvgpu import kernels
from kvgpu.caches.page import Pages
from kvgpu.caches.ring import Ring
from kvgpu.caches.store import Store
from kvgpu.captured.batch import Batch
from kvgpu.captured.batch_step import CapturedBatchStep
from kvgpu.captured.growing_batch import GrowingBatch
from kvgpu.captured.page_batch import PageBatch
from kvgpu.captured.step import CapturedStep, Step
from kvgpu.captured.window_batch import WindowBatch
from kvgpu.memory.buffers import Workspace
from kvgpu.memory.device_arrays import DeviceRows
from kvgpu.runtime import Block, Meter, Work
from kvgpu.runtimes.capture import Recorder, Replayable
from kvgpu.runtimes.nvidia.cuda_launch import Kernel, Unreleased
from kvgpu.runtimes.nvidia.cupy import CuPyRuntime
from kvspec.contract import Attention, Rope
from kvspec.geometry import Config

ARGUMENTS, LAUNCHES, ROUNDS, CALLS = 17, 128, 15, 200
"""Arguments of a launch, as an append's; launches of a recording; rounds, and calls in each."""

LAYERS, HEADS = 32, 32
"""Layers and query heads of the step."""


def main() -> None:
    """Print microseconds of the processor: the median of the rounds, and the quartiles."""
    runtime = OverNothing()
    meter, work, recorder = runtime.meter, Work(16, 1, 8, 2), runtime._recorder
    blocks = [Block(SimpleNamespace(ptr=4096 * i), 64, meter) for i in range(4)]
    args = (*blocks, *range(ARGUMENTS - len(blocks)))

    def launched() -> None:
        runtime.launch("move16", work, *args)

    def all_launched() -> None:
        for _ in range(LAUNCHES):
            launched()

    recording = recorder.record(all_launched)
    replayed = Replayable(recorder, Unreleased(recording), lambda: None).replay
    looked_through = Replayable(recorder, recording, lambda: None).replay
    step, uncaptured = steps()
    cases = {
        f"a launch of {ARGUMENTS} arguments": launched,
        f"a replay of {LAUNCHES} launches": replayed,
        "the same, after a block was released": looked_through,
        f"a decode step of {LAYERS} layers, captured: {launches(step)} launches": replay(step),
        "the same, not captured": uncaptured,
        **{
            f"a captured step of {m} sequences, {kind}: {launches(step)} launches": replay(step)
            for kind, m, step in ((kind, m, batched(kind, m)) for kind in BATCHES for m in (1, 128))
        },
    }
    rounds = [[_microseconds(call) for call in cases.values()] for _ in range(ROUNDS)]
    times = np.quantile(rounds, (0.5, 0.25, 0.75), axis=0).T
    rows = [(name, *quartiles) for name, quartiles in zip(cases, times, strict=True)]
    print(tabulate(rows, ("Python", "us", "quartile", "quartile"), floatfmt=".2f"))


MAX_LEN = 4096
CONFIG = Config(k_dim=128, v_dim=128, kv_heads=8, layers=LAYERS, max_len=MAX_LEN)
"""The rows of Llama-3.1 8B."""


def opened() -> Store:
    """Give a store of them."""
    return Store(CONFIG, Workspace(OverNothing()))


def steps() -> tuple[CapturedStep, Callable[[], None]]:
    """Give a captured step, and a function that does the same layer by layer."""
    store, turn = opened(), Rope(base=500000)
    step = CapturedStep(store, HEADS, turn)
    queries, rows = step.queries[:1], (1, 8, 1, 128)
    keys = DeviceRows(store.space.runtime, step.rows.keys, rows, np.dtype(np.float16))
    out, how = DeviceRows(store.space.runtime, step.out.block, queries.shape, queries.dtype), Attention(rope=turn)

    def uncaptured() -> None:
        for layer in range(LAYERS):
            store.attend(queries, keys, keys, how, out, of=layer)
        store.lengths_ = [0] * LAYERS

    return step, uncaptured


def growing(m: int) -> Batch:
    """Give a store's batch."""
    store = opened()
    store.batch(m, most=m)
    return GrowingBatch(store)


def windows(m: int) -> Batch:
    """Give sequences that slide in windows of 1,024."""
    config, space = CONFIG.changed(window=1024), Workspace(OverNothing())
    batch = WindowBatch(space, config, m)
    for sequence in range(m):
        batch.admit(sequence, [Ring(config.changed(layers=None, max_len=None), space)] * LAYERS)
    return batch


def pages(m: int) -> Batch:
    """Give sequences in pages of 16, which come to the ends of theirs at different steps."""
    config = CONFIG.changed(kv_heads=LAYERS * CONFIG.kv_heads, page_size=16, pages=m * 257)
    cache = Pages(config, Workspace(OverNothing()))
    batch = PageBatch(cache, LAYERS, m, MAX_LEN)
    for sequence in range(m):
        rows, source = np.zeros((1, config.kv_heads, sequence % 16, 128), np.float16), cache.admit()
        cache.append(rows, rows, source)
        batch.admit(sequence, source)
        cache.drop(source)
    return batch


BATCHES = {"growing": growing, "in windows": windows, "in pages": pages}


def batched(kind: str, m: int) -> CapturedBatchStep:
    """Give a captured step of m sequences."""
    return CapturedBatchStep(BATCHES[kind](m), HEADS, Rope(base=500000))


def launches(step: Step) -> int:
    """Count the launches of a captured step."""
    return len(step.work._recording._recording.launches)  # type: ignore[attr-defined]


def replay(step: CapturedStep | CapturedBatchStep) -> Callable[[], None]:
    """Replay it: there is room for more steps than are taken."""
    assert ROUNDS * CALLS + 16 < MAX_LEN
    return step.replay


class Nothing(nullcontext[None]):
    """A driver, a stream, and a graph, that do nothing."""

    ptr = 2

    def __getattr__(self, name: str) -> Callable[..., Nothing]:
        return lambda *_, **__: self


class OverNothing(CuPyRuntime):
    """The runtime over a driver that does nothing."""

    def __init__(self) -> None:
        self.errors, self.meter, self._stream = (), Meter(), Nothing()
        self._recorder, self._pool, self._cuda = Recorder(self.meter), Nothing(), Nothing()
        self._cupy = SimpleNamespace(cuda=SimpleNamespace(memory=SimpleNamespace(OutOfMemoryError=MemoryError)))
        self._kernels = {}
        self.learn("", kernels.KERNELS)

    def learn(self, text: str, names: Mapping[str, int], shared: int = 0) -> None:
        """Know kernels that do nothing."""
        self._kernels |= {name: Kernel(Nothing(), Nothing(), name, shared) for name in names}


def _microseconds(call: Callable[[], None]) -> float:
    began = time.process_time()
    for _ in range(CALLS):
        call()
    return (time.process_time() - began) / CALLS * 1e6


if __name__ == "__main__":
    main()
