"""Attention on tensor cores under a sanitizer: a few cases, each compared with what is exact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kvgpu.runtimes import cpp_compiler
from kvgpu.runtimes.cuda_cpu import CudaCPURuntime
from kvgpu.runtimes.fast import hopper_prefill, warp_kernels, warp_prefill
from support.device.attention_case import Case
from support.device.warp_cases import attended, geometry, worst
from tools.sanitizers.findings import DIFFERENCE, Report, refused
from tools.sanitizers.planted import Planted

CASES: dict[str, tuple[tuple[Case, int | None], ...]] = {
    "attend_warps": (
        (Case("f16", 256, 32, group=3, kv_heads=2, held=290, wrap=290), None),
        (Case("f16", 256, 32, group=3, held=290, wrap=300, turn=250, window=261, on_device=True), None),
        (Case("bf16", 64, 32, group=3, entries=2, held=270, wrap=270, count=3, together=3, on_device=True), 16),
        (Case("f16", 32, 64, group=20, held=40, wrap=40, count=2, first=7, window=30), 5),
        (Case("f32", 32, 64, group=3, kv_heads=2, held=150, wrap=150), None),
    ),
    "prefill_warps": (
        (Case("bf16", 32, 64, group=3, held=1030, wrap=1030, count=25, together=warp_prefill.QUERIES), None),
        (Case("f16", 160, 32, group=2, held=72, wrap=72, count=20, window=40, together=warp_prefill.QUERIES), 16),
        (Case("bf16", 32, 32, held=70, wrap=70, count=66, entries=2, together=warp_prefill.QUERIES), 5),
    ),
    "wide_warps": (
        (Case("bf16", 320, 64, group=3, held=290, wrap=300, turn=250), None),
        (Case("f16", 64, 320, group=20, held=40, wrap=40, count=2, first=7, window=30), 5),
        (Case("f32", 192, 64, group=12, held=150, wrap=160, turn=120), None),
    ),
    "hopper_prefill": (
        (Case("bf16", 64, 64, group=3, held=1100, wrap=1100, count=45, together=hopper_prefill.QUERIES), None),
        (Case("f16", 64, 128, group=2, held=472, wrap=480, turn=350, count=20, window=340, together=128), None),
        (Case("f16", 64, 64, held=200, wrap=200, count=130, entries=2, together=hopper_prefill.QUERIES), 16),
    ),
    "hopper_latent": (
        (Case("bf16", 192, 128, group=16, held=1100, wrap=1100, latent=True), None),
        (Case("f16", 192, 128, group=40, held=270, wrap=300, turn=250, count=2, window=230, latent=True), None),
        (Case("f16", 128, 128, group=3, held=150, wrap=150, count=2, latent=True), 5),
    ),
}
"""By kernel, with the slots of a page, if rows lie in pages. The first of each is split; in some a warp has more
tiles than its ring of copies holds, or a block more stages than there is room for."""


class Device(CudaCPURuntime):
    """A runtime that plants a bug in what it learns."""

    workers, multiprocessors = 4, 2

    def __init__(self, sanitizer: str, bug: Planted | None) -> None:
        super().__init__("", {}, sanitizer, device="gpu")
        self._bug = bug

    def learn(
        self, text: str, names: Mapping[str, int], flags: tuple[str, ...] = cpp_compiler.FLAGS, shared: int = 0
    ) -> None:
        """Compile a text with the bug in it."""
        super().learn(self._bug.plant(text) if self._bug else text, names, flags, shared)


def text(kernel: str) -> str:
    """The program of a case; those of the others have the same lines, but for the numbers they define."""
    its = geometry(CASES[kernel][0][0], "runs")
    return str(warp_kernels.module(its).source(its, kernel, Device.workers))


def attend(kernel: str, device: Device, every: int) -> Iterator[Report]:
    """Run the cases of a kernel, or one in so many; ends with a line that counts them."""
    chosen = CASES[kernel][::every]
    for case, slots in chosen:
        print(f"attention over {case.held} rows, {f'in pages of {slots}' if slots else 'in a ring'}", flush=True)
        try:
            share = worst(case, attended(device, case, slots))
        except RuntimeError as e:
            yield refused(str(e), kernel)
            continue
        if share > 1:
            yield Report(DIFFERENCE, kernel, detail=f"{share:.2g} times the bound")
    print(f"replayed: {len(chosen)} cases of attention", flush=True)
