"""Attention on tensor cores under a sanitizer: a few cases, each compared with what is exact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kvadapters.gpu.runtimes import cpp_compiler, warp_attention
from kvadapters.gpu.runtimes.cuda_cpu import CudaCPURuntime
from support.attention_case import Case
from support.warp_cases import attended, geometry, worst
from tools.sanitizers.findings import DIFFERENCE, Report, refused
from tools.sanitizers.planted_bugs import Planted

CASES = (
    (Case("f16", 256, 32, group=3, kv_heads=2, held=290, wrap=290), None),
    (Case("f16", 256, 32, group=3, held=290, wrap=300, turn=250, window=261, on_device=True), None),
    (Case("bf16", 64, 32, group=3, entries=2, held=270, wrap=270, count=3, together=3, on_device=True), 16),
    (Case("f16", 32, 64, group=20, held=40, wrap=40, count=2, first=7, window=30), 5),
)
"""With the slots of a page, if rows lie in pages. The first three are split; in the first two a warp has more tiles
than its ring of copies holds."""


class Device(CudaCPURuntime):
    """A runtime that plants a bug in what it learns."""

    workers = 8

    def __init__(self, sanitizer: str, bug: Planted | None) -> None:
        super().__init__("", {}, sanitizer)
        self._bug = bug

    def learn(
        self, text: str, names: Mapping[str, int], flags: tuple[str, ...] = cpp_compiler.FLAGS, shared: int = 0
    ) -> None:
        """Compile a text with the bug in it."""
        super().learn(self._bug.plant(text) if self._bug else text, names, flags, shared)


def text() -> str:
    """The program of a case; those of the others have the same lines, but for the numbers they define."""
    return warp_attention.source(geometry(CASES[0][0], "runs"), "attend_warps", Device.workers)


def attend(device: Device, every: int) -> Iterator[Report]:
    """Run the cases, or one in so many; ends with a line that counts them."""
    chosen = CASES[::every]
    for case, slots in chosen:
        print(f"attention over {case.held} rows, {f'in pages of {slots}' if slots else 'in a ring'}", flush=True)
        try:
            share = worst(case, attended(device, case, slots))
        except RuntimeError as e:
            yield refused(str(e), "attend_warps")
            continue
        if share > 1:
            yield Report(DIFFERENCE, "attend_warps", detail=f"{share:.2g} times the bound")
    print(f"replayed: {len(chosen)} cases of attention", flush=True)
