"""Systematic mutants: every comparison, offset, constant and statement of the bookkeeping made wrong in turn.

Those of the reference and of the GPU caches are made by `operators`, a module at a time. Which of them no trace can
find, and why, stands in `equivalents`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from kvconform.mutants.mutant import Mutant, numbered
from kvconform.mutants.systematic import equivalents, operators, patched_modules
from kvconform.mutants.systematic.operators import Fault


class Target(NamedTuple):
    """A module in which faults are planted, and the chapters whose traces are tried on it."""

    module: str
    chapters: tuple[str, ...]


REFERENCE: dict[str, Target] = {
    "reference/growing": Target(
        "kvref.growing", ("growing", "snapshot", "mem", "mask", "residency", "draft", "attention")
    ),
    "reference/ring": Target("kvref.ring", ("ring", "snapshot", "mem", "mask", "residency", "draft", "attention")),
    "reference/masks": Target("kvref.masks", ("mask", "attention")),
    "reference/snapshot": Target("kvref.snapshot", ("snapshot",)),
    "reference/rows": Target("kvref.rows", ("ring", "growing", "snapshot", "draft", "residency")),
    "reference/copy": Target("kvref.copy", ("copy", "mem")),
    "reference/casts": Target("kvref.casts", ("copy",)),
    "reference/draft": Target("kvref.draft", ("draft",)),
    "reference/store": Target("kvref.store", ("store", "batch", "mem")),
    "reference/batch": Target("kvref.batch", ("batch",)),
    "reference/mem": Target("kvref.mem", ("mem",)),
    "reference/meter": Target("kvref.meter", ("residency",)),
    "reference/attention": Target("kvref.attention", ("attention", "draft", "rope")),
    "reference/attention_store": Target("kvref.attention_store", ("attention", "batch", "rope")),
    "reference/strict_attention": Target("kvref.strict_attention", ("attention",)),
    "reference/page": Target("kvref.page", ("page",)),
    "reference/page_pool": Target("kvref.page_pool", ("page",)),
    "reference/bucket": Target("kvref.bucket", ("bucket",)),
    "reference/compiled_graph": Target("kvref.compiled_graph", ("bucket",)),
    "reference/rope": Target("kvref.rope", ("rope",)),
    "reference/rope_angles": Target("kvref.rope_angles", ("rope",)),
}
"""Modules of the reference by their label, which begins the ids of their mutants. Frozen files hold these ids, so a
label stays when its module moves. Ids hold statements too, so names in them stay: `import common as refusals`."""

GPU: dict[str, Target] = {
    "gpu/growing": Target(
        "kvadapters.gpu.caches.growing", ("growing", "snapshot", "mem", "mask", "residency", "draft", "attention")
    ),
    "gpu/ring": Target(
        "kvadapters.gpu.caches.ring", ("ring", "snapshot", "mem", "mask", "residency", "draft", "attention")
    ),
    "gpu/buffers": Target(
        "kvadapters.gpu.memory.buffers",
        ("growing", "ring", "snapshot", "residency", "batch", "attention", "rope", "bucket"),
    ),
    "gpu/cache_rows": Target("kvadapters.gpu.memory.cache_rows", ("growing", "ring", "snapshot", "draft", "store")),
    "gpu/mask": Target("kvadapters.gpu.caches.mask", ("mask", "attention", "draft", "residency")),
    "gpu/snapshot": Target("kvadapters.gpu.caches.snapshot", ("snapshot", "residency")),
    "gpu/copy": Target("kvadapters.gpu.caches.copy", ("copy", "mem", "residency")),
    "gpu/draft": Target("kvadapters.gpu.caches.draft", ("draft",)),
    "gpu/row_groups": Target("kvadapters.gpu.memory.row_groups", ("store", "batch", "residency")),
    "gpu/store": Target("kvadapters.gpu.caches.store", ("store", "batch", "mem", "residency")),
    "gpu/batch_rows": Target("kvadapters.gpu.memory.batch_rows", ("batch", "residency")),
    "gpu/layout": Target(
        "kvadapters.gpu.memory.layout", ("batch", "store", "ring", "residency", "bucket", "attention", "growing")
    ),
    "gpu/batch": Target("kvadapters.gpu.caches.batch", ("batch", "residency")),
    "gpu/mem": Target("kvadapters.gpu.caches.mem", ("mem",)),
    "gpu/device_arrays": Target("kvadapters.gpu.memory.device_arrays", ("residency", "attention", "rope")),
    "gpu/attention": Target(
        "kvadapters.gpu.caches.attention", ("attention", "draft", "page", "bucket", "residency")
    ),
    "gpu/queries": Target("kvadapters.gpu.caches.queries", ("attention", "residency")),
    "gpu/attention_cache": Target(
        "kvadapters.gpu.caches.attention_cache", ("attention", "draft", "rope", "residency")
    ),
    "gpu/attention_store": Target(
        "kvadapters.gpu.caches.attention_store", ("attention", "batch", "rope", "residency")
    ),
    "gpu/page": Target("kvadapters.gpu.caches.page", ("page", "rope", "residency")),
    "gpu/page_pool": Target("kvadapters.gpu.memory.page_pool", ("page",)),
    "gpu/rope_tables": Target("kvadapters.gpu.memory.rope_tables", ("rope",)),
    "gpu/bucket": Target("kvadapters.gpu.caches.bucket", ("bucket", "residency")),
    "gpu/compiled_graph": Target("kvadapters.gpu.caches.compiled_graph", ("bucket",)),
    "gpu/rope": Target("kvadapters.gpu.caches.rope", ("rope", "residency")),
    "gpu/rope_angles": Target("kvadapters.gpu.memory.rope_angles", ("rope",)),
    "gpu/capture": Target("kvadapters.gpu.runtimes.capture", ("batch", "attention", "bucket", "residency")),
}
"""Modules of the GPU caches by their label, tried with the CUDA kernels on the CPU.

Not here is what knows nothing of a cache: a runtime and what it is made of (`runtime`, `cuda_cpu`, `compiler`), the
meter with it, which the suite believes; `grids`, as any launch shape does all the work; `fast`, which is held to a
bound and not to bits; `timed`; and `adapter`, which names what the others do.
"""

TARGETS = {**REFERENCE, **GPU}
"""All of them."""

REFERENCE_AGAIN = (*(t.module for t in REFERENCE.values()), "kvadapters.reference")
GPU_AGAIN = (
    *(t.module for t in GPU.values()),
    "kvadapters.gpu.timing",
    "kvadapters.gpu.adapter",
    "kvadapters.gpu.runtimes.cuda_cpu",
)
"""What is executed anew for a mutant: whatever may hold one, and the adapter over it. The rest is shared."""


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
        return patched_modules.loaded("kvadapters.reference", REFERENCE_AGAIN, changed).Reference()
    if "kvadapters.gpu.runtimes.capture" in changed:  # a runtime is made of it
        return patched_modules.loaded("kvadapters.gpu.runtimes.cuda_cpu", GPU_AGAIN, changed).CudaCPU(checks=True)
    return patched_modules.loaded("kvadapters.gpu.adapter", GPU_AGAIN, changed).Caches(
        "cuda-cpu", _runtime(), checks=True
    )


def prepared(mutants: Iterable[Mutant]) -> None:
    """Make what mutants of the GPU caches share, so that it is there in each of their processes."""
    if any(isinstance(m.adapter, Faulty) and m.adapter.label in GPU for m in mutants):
        adapter({}, gpu=True)


@cache
def _runtime() -> Any:
    from kvadapters.gpu.runtimes.cuda_cpu import CudaCPURuntime

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
            first_is_enough=label in GPU,
            alone=label in GPU,
            equivalent=equivalents.argument(id_, name),
        )
