"""A captured step of a batch under a sanitizer: batches of every kind, each compared with its sequences alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kvgpu.adapter import Caches
from kvgpu.captured import batch_step
from kvgpu.captured.batch_step import CapturedBatchStep
from kvgpu.captured.pool_batch import PoolBatch
from kvgpu.runtimes import cpp_compiler
from kvgpu.runtimes.fast.cuda_fast import FastCudaCPURuntime
from kvspec.contract import Rope
from support.device.captured_batches import HEADS, KINDS, Kind, compared, stepped
from tools.sanitizers.findings import DIFFERENCE, Report, refused
from tools.sanitizers.planted import Planted

KERNEL, DTYPE = "step_turned", "f16"

STEPS = 4
"""Steps of a batch at most: by then windows have come round, and sequences have begun pages."""


class Device(FastCudaCPURuntime):
    """A runtime that plants a bug in the kernel of the step."""

    def __init__(self, sanitizer: str, bug: Planted | None) -> None:
        self._bug = bug
        super().__init__(sanitizer)

    def learn(
        self, text: str, names: Mapping[str, int], flags: tuple[str, ...] = cpp_compiler.FLAGS, shared: int = 0
    ) -> None:
        """Compile a text, that of the step with the bug in it."""
        planted = self._bug is not None and any(name.startswith(KERNEL) for name in names)
        super().learn(self._bug.plant(text) if planted and self._bug else text, names, flags, shared)


def text() -> str:
    """The program that is watched, without attention."""
    return batch_step.source(f"{KERNEL}_{DTYPE}", DTYPE)


def replay(device: Device, every: int) -> Iterator[Report]:
    """Step batches of all kinds, or one in so many; ends with a line that counts them."""
    chosen = [*reversed(KINDS)][::every]
    for name in chosen:
        print(f"a captured batch: {name}", flush=True)
        yield from _differs(KINDS[name](Caches("watched", device, checks=True), DTYPE))
    print(f"replayed: {len(chosen)} captured batches", flush=True)


def _differs(kind: Kind) -> Iterator[Report]:
    try:
        step = CapturedBatchStep(kind.batch, HEADS, Rope())
        for number in range(min(STEPS, kind.steps)):
            if number == STEPS - 1:
                _drop(kind, 0)
            stepped(kind, step, number, Rope())
        compared(kind)
    except AssertionError as e:
        yield Report(DIFFERENCE, KERNEL, detail=str(e).partition("\n")[0])
    except RuntimeError as e:
        yield refused(str(e), KERNEL)


def _drop(kind: Kind, sequence: int) -> None:
    """Leave a place empty, where a batch can."""
    if isinstance(kind.batch, PoolBatch):
        kind.batch.drop(sequence)
        kind.gone.add(sequence)
