"""Systematic mutants: every comparison, offset, constant and statement of the bookkeeping made wrong in turn.

Those of the reference and of the GPU caches are made by `operators`, a module at a time. Which of them no trace can
find, and why, stands in `equivalents`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from kvconform.mutants import again, equivalents, operators
from kvconform.mutants.mutant import Mutant
from kvconform.mutants.operators import Fault

REFERENCE: dict[str, tuple[str, ...]] = {
    "kvref.growing": ("growing", "snapshot", "mem", "mask", "residency", "draft", "attention"),
    "kvref.ring": ("ring", "snapshot", "mem", "mask", "residency", "draft", "attention"),
    "kvref.masks": ("mask", "attention"),
    "kvref.snapshot": ("snapshot",),
    "kvref.rows": ("ring", "growing", "snapshot", "draft", "residency"),
    "kvref.copy": ("copy", "mem"),
    "kvref.casts": ("copy",),
    "kvref.draft": ("draft",),
    "kvref.store": ("store", "batch", "mem"),
    "kvref.batch": ("batch",),
    "kvref.mem": ("mem",),
    "kvref.meter": ("residency",),
    "kvref.attention": ("attention", "draft", "rope"),
    "kvref.attend_store": ("attention", "batch", "rope"),
    "kvref.strict": ("attention",),
    "kvref.page": ("page",),
    "kvref.pool": ("page",),
    "kvref.bucket": ("bucket",),
    "kvref.graph": ("bucket",),
    "kvref.rope": ("rope",),
    "kvref.angles": ("rope",),
}
"""Modules of the reference, each with the profiles whose traces are tried on it."""

GPU: dict[str, tuple[str, ...]] = {
    "kvadapters.gpu.growing": ("growing", "snapshot", "mem", "mask", "residency", "draft", "attention"),
    "kvadapters.gpu.ring": ("ring", "snapshot", "mem", "mask", "residency", "draft", "attention"),
    "kvadapters.gpu.buffers": ("growing", "ring", "snapshot", "residency", "batch", "attention", "rope", "bucket"),
    "kvadapters.gpu.slots": ("growing", "ring", "snapshot", "draft", "store"),
    "kvadapters.gpu.mask": ("mask", "attention", "draft", "residency"),
    "kvadapters.gpu.snapshot": ("snapshot", "residency"),
    "kvadapters.gpu.copy": ("copy", "mem", "residency"),
    "kvadapters.gpu.draft": ("draft",),
    "kvadapters.gpu.layers": ("store", "batch", "residency"),
    "kvadapters.gpu.store": ("store", "batch", "mem", "residency"),
    "kvadapters.gpu.sequences": ("batch", "residency"),
    "kvadapters.gpu.places": ("batch", "store", "ring", "residency", "bucket", "attention", "growing"),
    "kvadapters.gpu.batch": ("batch", "residency"),
    "kvadapters.gpu.mem": ("mem",),
    "kvadapters.gpu.resident": ("residency", "attention", "rope"),
    "kvadapters.gpu.attention": ("attention", "draft", "page", "bucket", "residency"),
    "kvadapters.gpu.asking": ("attention", "residency"),
    "kvadapters.gpu.attending": ("attention", "draft", "rope", "residency"),
    "kvadapters.gpu.attend_store": ("attention", "batch", "rope", "residency"),
    "kvadapters.gpu.page": ("page", "rope", "residency"),
    "kvadapters.gpu.pool": ("page",),
    "kvadapters.gpu.tables": ("rope",),
    "kvadapters.gpu.bucket": ("bucket", "residency"),
    "kvadapters.gpu.graph": ("bucket",),
    "kvadapters.gpu.rope": ("rope", "residency"),
    "kvadapters.gpu.angles": ("rope",),
    "kvadapters.gpu.capture": ("batch", "attention", "bucket", "residency"),
}
"""Modules of the GPU caches, tried with the CUDA kernels on the CPU.

Not here is what knows nothing of a cache: a runtime and what it is made of (`runtime`, `cuda_cpu`, `compiler`), the
meter with it, which the suite believes; `grids`, as any launch shape does all the work; `fast`, which is held to a
bound and not to bits; `timed`; and `adapter`, which names what the others do.
"""

REFERENCE_AGAIN = (*REFERENCE, "kvadapters.reference")
GPU_AGAIN = (*GPU, "kvadapters.gpu.timed", "kvadapters.gpu.adapter", "kvadapters.gpu.cuda_cpu")
"""What is executed anew for a mutant: whatever may hold one, and the adapter over it. The rest is shared."""


@dataclass(frozen=True)
class Faulty:
    """Makes the adapter that has a fault in one module."""

    module: str
    fault: Fault

    def __call__(self) -> Any:
        return adapter({self.module: self.fault.text}, gpu=self.module in GPU)


def adapter(changed: dict[str, str], gpu: bool = False) -> Any:
    """The reference, or the GPU caches over the CUDA kernels on the CPU, with these texts for some modules."""
    if not gpu:
        return again.loaded("kvadapters.reference", REFERENCE_AGAIN, changed).Reference()
    if "kvadapters.gpu.capture" in changed:  # a runtime is made of it
        return again.loaded("kvadapters.gpu.cuda_cpu", GPU_AGAIN, changed).CudaCPU(checks=True)
    return again.loaded("kvadapters.gpu.adapter", GPU_AGAIN, changed).Caches("cuda-cpu", _runtime(), checks=True)


def prepared(mutants: Iterable[Mutant]) -> None:
    """Make what mutants of the GPU caches share, so that it is there in each of their processes."""
    if any(isinstance(m.adapter, Faulty) and m.adapter.module in GPU for m in mutants):
        adapter({}, gpu=True)


@cache
def _runtime() -> Any:
    from kvadapters.gpu.cuda_cpu import CudaCPURuntime

    return CudaCPURuntime()


def reference() -> Iterator[Mutant]:
    """Every systematic mutant of the reference."""
    for module, profiles in REFERENCE.items():
        yield from of(module, profiles)


def gpu() -> Iterator[Mutant]:
    """Every systematic mutant of the GPU caches' bookkeeping."""
    for module, profiles in GPU.items():
        yield from of(module, profiles)


def of(module: str, profiles: tuple[str, ...]) -> Iterator[Mutant]:
    """The mutants of one module, each named by its function and its change; numbered where several are alike."""
    found = list(operators.faults(again.text(module), fine=module in REFERENCE))
    alike = Counter((f.function, f.what) for f in found)
    seen = Counter[tuple[str, str]]()
    for fault in found:
        name = f"{module}.{fault.function}: {fault.what}"
        seen[fault.function, fault.what] += 1
        numbered = f"{name} #{seen[fault.function, fault.what]}" if alike[fault.function, fault.what] > 1 else name
        argued = equivalents.ARGUED.get(numbered) or equivalents.ARGUED.get(name, "")
        says = f"line {fault.line} of {fault.function} in {module}: {fault.what}"
        yield Mutant(
            numbered,
            "systematic",
            says,
            tuple(sorted(fault.clauses)),
            Faulty(module, fault),
            profiles=profiles,
            first_is_enough=module in GPU,
            alone=module in GPU,
            equivalent=argued,
        )
