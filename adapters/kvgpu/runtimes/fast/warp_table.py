"""Tables of what the fast CUDA kernels need, as NVRTC compiles them: attention on tensor cores, captured steps.

`python -m kvgpu.runtimes.fast.warp_table [ARCHITECTURE ...]` prints both. Exit status: 0 no kernel spills
registers; 1 one does; 4 there is no NVRTC here. Nothing in the tables was measured on a GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple

from tabulate import tabulate

from kvgpu import kernels
from kvgpu.captured import batch_step
from kvgpu.runtimes.fast import hopper_latent, hopper_prefill, warp_attention, warp_kernels, warp_prefill
from kvgpu.runtimes.fast.attention import Geometry
from kvgpu.runtimes.nvidia import nvrtc, sass
from kvspec.errors import CannotRun
from kvspec.geometry import DTYPES

NAME, WORKERS = "attend", 264
"""The kernel's name here; the workers of a GPU with 132 multiprocessors."""

LANES, WORD = 32, 16
"""Lanes that an instruction copies for, and the bytes that it copies for each."""

WIDE = (
    *(
        Geometry(dtype, 576, 512, 128, 1, lie, 1)
        for dtype, lie in (("bf16", "runs"), ("f16", "runs"), ("bf16", "pages"))
    ),
    *(Geometry("f32", width, width, 16, 1, lie, 1) for width, lie in ((256, "runs"), (320, "rows"))),
)
"""DeepSeek's latent rows, and wide f32 rows."""

SQUARE = tuple(
    Geometry(dtype, width, width, group, 1, lie, queries)
    for dtype, width, group, lie, queries in (
        ("bf16", 64, 8, "runs", 1),
        ("bf16", 96, 4, "runs", 1),
        ("bf16", 128, 1, "runs", 1),
        ("bf16", 128, 8, "runs", 1),
        ("f16", 128, 8, "runs", 1),
        ("bf16", 128, 8, "pages", 1),
        ("bf16", 128, 8, "rows", 1),
        ("bf16", 128, 16, "runs", 1),
        ("bf16", 128, 4, "runs", 4),
        ("bf16", 256, 8, "runs", 1),
        ("f16", 256, 8, "pages", 1),
        ("f32", 64, 8, "pages", 1),
        ("f32", 128, 8, "runs", 1),
        ("f32", 64, 16, "runs", 1),
        ("bf16", 64, 8, "runs", warp_prefill.QUERIES),
        ("bf16", 128, 1, "runs", warp_prefill.QUERIES),
        ("bf16", 128, 4, "runs", warp_prefill.QUERIES),
        ("bf16", 128, 4, "pages", warp_prefill.QUERIES),
        ("bf16", 128, 4, "rows", warp_prefill.QUERIES),
        ("f16", 128, 4, "runs", warp_prefill.QUERIES),
        ("f16", 160, 4, "runs", warp_prefill.QUERIES),
        ("bf16", 256, 8, "runs", warp_prefill.QUERIES),
    )
)
"""Those of common models, and those that need most registers."""

GEOMETRIES = SQUARE + WIDE
"""The geometries shown."""

HEADINGS = (
    *("architecture", "rows", "width", "heads", "lie in", "queries", "registers", "bytes spilled", "shared bytes"),
    *("bytes in flight a block", "instructions", "instructions a tile", "bytes a tile"),
)

HOPPER = tuple(
    Geometry(dtype, *dims, group, 1, lie, hopper_prefill.QUERIES)
    for dtype, dims, group, lie in (
        ("bf16", (64, 64), 8, "runs"),
        ("bf16", (128, 128), 1, "runs"),
        ("bf16", (128, 128), 4, "runs"),
        ("bf16", (128, 128), 4, "pages"),
        ("f16", (128, 128), 4, "runs"),
        ("f16", (128, 64), 16, "pages"),
    )
)
"""Those shown of the kernel for many queries, for compute capability 9.0 alone."""

LATENT = tuple(
    Geometry(dtype, *dims, group, 1, lie, hopper_latent.COLUMNS, "latent")
    for dtype, dims, group, lie in (
        ("bf16", (576, 512), 128, "runs"),
        ("bf16", (576, 512), 128, "pages"),
        ("bf16", (576, 512), 16, "rows"),
        ("f16", (576, 512), 128, "runs"),
        ("bf16", (320, 256), 16, "pages"),
        ("bf16", (192, 128), 16, "runs"),
    )
)
"""The same of that for latent rows."""

HOPPER_ONLY = "sm_90a"
"""What it is compiled for."""

HOPPER_HEADINGS = (
    *("architecture", "rows", "widths", "heads", "lie in", "columns", "registers", "bytes spilled", "shared bytes"),
    *("bytes in flight a block", "instructions"),
)

STEP_HEADINGS = ("architecture", "rows", "registers", "bytes spilled")


class Line(NamedTuple):
    """A line of the table: a kernel for one architecture."""

    architecture: str
    geometry: Geometry
    usage: nvrtc.Usage
    instructions: int
    loop: sass.Loop

    @property
    def tile_bytes(self) -> int:
        """Count the bytes of a tile of keys and one of values."""
        itemsize = DTYPES[self.geometry.dtype].itemsize
        return warp_attention.TILE * (self.geometry.k_dim + self.geometry.v_dim) * itemsize

    @property
    def each_tile(self) -> int:
        """Count the most instructions of a warp for each tile. An inner loop of copies runs as often as it takes to
        copy a tile or, where warps share a tile or a stage, the warp's share."""
        kernel = warp_kernels.module(self.geometry)
        tiles = warp_prefill.TILES if kernel is warp_prefill else 1
        warps = 1 if kernel is warp_attention else warp_attention.WARPS
        copies = tiles * self.tile_bytes // warps // (LANES * WORD)
        times = copies // self.loop.copied if self.loop.copied else 1
        return (self.loop.instructions + (times - 1) * self.loop.copying) // tiles

    def cells(self) -> tuple[object, ...]:
        """Give the cells under the headings."""
        dtype, k_dim, v_dim, heads, _, lie, queries, _ = self.geometry
        width = k_dim if k_dim == v_dim else f"{k_dim}, {v_dim}"
        asked = (self.architecture, dtype, width, heads, lie, queries)
        kernel = warp_kernels.module(self.geometry)
        memory = kernel.shared(self.geometry), kernel.in_flight(self.geometry)
        return *asked, *self.usage, *memory, self.instructions, self.each_tile, self.tile_bytes


def line(geometry: Geometry, architecture: str) -> Line:
    """Compile a kernel. Raises CompileError, and CannotRun where there is no NVRTC."""
    cubin = nvrtc.compiled(warp_kernels.module(geometry).source(geometry, NAME, WORKERS), architecture)
    loop = sass.main_loop(cubin.data, NAME, int(architecture.removeprefix("sm_")))
    return Line(architecture, geometry, cubin.usage[NAME], sass.instructions(cubin.data, NAME), loop)


class HopperLine(NamedTuple):
    """A line of the table of the kernels for compute capability 9.0 alone."""

    geometry: Geometry
    usage: nvrtc.Usage
    instructions: int

    def cells(self) -> tuple[object, ...]:
        """Give the cells under the headings."""
        dtype, k_dim, v_dim, heads, _, lie, queries, form = self.geometry
        kernel = warp_kernels.module(self.geometry)
        memory = kernel.shared(self.geometry), kernel.in_flight(self.geometry)
        asked = (HOPPER_ONLY, f"{dtype} {form}".strip(), f"{k_dim}, {v_dim}", heads, lie, queries)
        return *asked, *self.usage, *memory, self.instructions


def hopper_line(geometry: Geometry) -> HopperLine:
    """Compile one of them. Raises as `line` does."""
    cubin = nvrtc.compiled(warp_kernels.module(geometry).source(geometry, NAME, WORKERS), HOPPER_ONLY)
    return HopperLine(geometry, cubin.usage[NAME], sass.instructions(cubin.data, NAME))


class StepLine(NamedTuple):
    """A line of the table of the kernel that turns and appends, for one architecture and dtype."""

    architecture: str
    dtype: str
    usage: nvrtc.Usage

    def cells(self) -> tuple[object, ...]:
        """Give the cells under the headings."""
        return self.architecture, self.dtype, *self.usage


def step_line(dtype: str, architecture: str) -> StepLine:
    """Compile that kernel. Raises as `line` does."""
    cubin = nvrtc.compiled(batch_step.source(NAME, dtype), architecture)
    return StepLine(architecture, dtype, cubin.usage[NAME])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; give the exit status."""
    named = (sys.argv[1:] if arguments is None else arguments) or (*nvrtc.ARCHITECTURES, HOPPER_ONLY)
    try:
        every = [a for a in named if a != HOPPER_ONLY]
        lines = [line(g, a) for a in every for g in GEOMETRIES]
        alone = [hopper_line(g) for g in HOPPER + LATENT if HOPPER_ONLY in named]
        steps = [step_line(d, a) for a in every for d in kernels.NUMBERS]
    except CannotRun as e:
        sys.stderr.write(f"{e}\n")
        return 4
    print(tabulate([each.cells() for each in lines], HEADINGS, "github"))
    print()
    print(tabulate([each.cells() for each in alone], HOPPER_HEADINGS, "github"))
    print()
    print(tabulate([each.cells() for each in steps], STEP_HEADINGS, "github"))
    used = [each.usage for each in lines] + [each.usage for each in alone] + [each.usage for each in steps]
    return int(any(usage.spilled for usage in used))


if __name__ == "__main__":
    sys.exit(main())
