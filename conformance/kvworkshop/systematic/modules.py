"""Systematic mutants: every comparison, offset, constant and statement of the bookkeeping made wrong, one each.

Those of the reference and of the GPU caches are made by `operators`, a module at a time. Which of them no trace can
find, and why, stands in `equivalents`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

from kvconform.bugs.mutant import Mutant, numbered
from kvspec.tables import table
from kvworkshop.systematic import equivalents, operators, patched_modules
from kvworkshop.systematic.operators import Fault


class Target(NamedTuple):
    """A module in which faults are planted, and the chapters whose traces are tried on it."""

    module: str
    chapters: tuple[str, ...]


def _targets(room: str) -> dict[str, Target]:
    rows = table("kvworkshop.systematic", "targets")[room]
    return {f"{room}/{name}": Target(row["module"], tuple(row["chapters"])) for name, row in rows.items()}


REFERENCE, GPU = _targets("reference"), _targets("gpu")
"""Modules of the reference, and of the GPU caches, by the label that begins the ids of their mutants."""

TARGETS = {**REFERENCE, **GPU}
"""All of them."""

REFERENCE_AGAIN = (*(t.module for t in REFERENCE.values()), "kvadapters.reference")
GPU_AGAIN = (
    *(t.module for t in GPU.values()),
    "kvgpu.timing",
    "kvgpu.adapter",
    "kvgpu.runtimes.cuda_cpu",
)
"""What is executed again for a mutant: whatever may hold one, and the adapter over it. The rest is shared."""


@dataclass(frozen=True)
class Faulty:
    """Makes the adapter that has a fault in the module of a label."""

    label: str
    fault: Fault

    def __call__(self) -> Any:
        return adapter({TARGETS[self.label].module: self.fault.text}, gpu=self.label in GPU)


def adapter(changed: dict[str, str], gpu: bool = False) -> Any:
    """The reference, or the GPU caches over the CUDA kernels on the CPU, with these texts for some modules."""
    if not gpu:
        return reference_again(changed).Reference()
    if "kvgpu.runtimes.capture" in changed:  # a runtime is made of it
        runtime = patched_modules.loaded("kvgpu.runtimes.cuda_cpu", GPU_AGAIN, changed).CudaCPURuntime()
    else:
        runtime = _runtime()
    caches = patched_modules.loaded("kvgpu.adapter", GPU_AGAIN, changed).Caches
    return caches("cuda-cpu", runtime, checks=True)


def prepared(mutants: Iterable[Mutant]) -> None:
    """Make what mutants of the GPU caches share, so that it is there in each of their processes."""
    if any(isinstance(m.adapter, Faulty) and m.adapter.label in GPU for m in mutants):
        adapter({}, gpu=True)


def reference_again(changed: dict[str, str]) -> ModuleType:
    """The module of the reference, with the caches of every kind, executed again with these texts."""
    return patched_modules.loaded(
        "kvadapters.reference", REFERENCE_AGAIN, changed, read=lambda module: [*module.Reference.caches.values()]
    )


@cache
def _runtime() -> Any:
    from kvgpu.runtimes.cuda_cpu import CudaCPURuntime

    return CudaCPURuntime()


def reference() -> Iterator[Mutant]:
    """Every systematic mutant of the reference."""
    for label in REFERENCE:
        yield from of(label)


def gpu() -> Iterator[Mutant]:
    """Every systematic mutant of the GPU caches' bookkeeping."""
    for label in GPU:
        yield from of(label)


def of(label: str) -> Iterator[Mutant]:
    """The mutants of one module, each named by its function and its change."""
    target = TARGETS[label]
    faults = list(operators.faults(patched_modules.text(target.module), fine=label in REFERENCE))
    names = [f"{label}.{fault.function}: {fault.what}" for fault in faults]
    for fault, name, id_ in zip(faults, names, numbered(names), strict=True):
        yield Mutant(
            id_,
            "systematic",
            f"line {fault.line} of {fault.function} in {label}: {fault.what}",
            tuple(sorted(fault.clauses)),
            Faulty(label, fault),
            chapters=target.chapters,
            place=(f"{label}.{fault.function}", label),
            stop_at_first_kill=label in GPU,
            own_process=label in GPU,
            equivalent=equivalents.argument(id_, name),
        )
