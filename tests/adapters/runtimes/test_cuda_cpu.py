"""The CUDA text on the CPU: the threads of a block, the compiler, the memory."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kvadapters.find import load
from kvgpu.adapters import CudaCPU
from kvgpu.runtime import Block, Work
from kvgpu.runtimes import build_folder, cpp_compiler, launch_shapes
from kvgpu.runtimes.cuda_cpu import CudaCPURuntime
from kvspec.contract import description
from kvspec.errors import CannotRun
from kvspec.geometry import Array, Config

TEXT = r"""
typedef long long i64;
#define KERNEL extern "C" __global__ void
KERNEL indices(int *to) {
  const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  to[block * blockDim.x * blockDim.y * blockDim.z + thread] = 1000 * block + thread;
}
KERNEL reversed(const int *from, int *to) {
  __shared__ int part[1024];
  const int n = blockDim.x, i = threadIdx.x;
  for (int round = 0; round < 3; ++round) {
    part[i] = from[blockIdx.x * n + i] + round;
    __syncthreads();
    to[blockIdx.x * n + i] = part[n - 1 - i];
    __syncthreads();
  }
}
KERNEL unwritten(unsigned *to) {
  __shared__ unsigned part[64];
  to[threadIdx.x + blockIdx.x * blockDim.x] = part[threadIdx.x];
  part[threadIdx.x] = 7;
}
KERNEL shuffles(const float *from, float *to) {
  const unsigned all = 0xffffffffu;
  const int i = threadIdx.x;
  const float x = from[i];
  to[i] = __shfl_sync(all, x, 5);
  to[64 + i] = __shfl_xor_sync(all, x, 3);
  to[128 + i] = __shfl_down_sync(all, x, 2, 8);
  to[192 + i] = __shfl_up_sync(all, x, 2, 8);
  to[256 + i] = __popc(__ballot_sync(all, i % 3 == 0));
  to[320 + i] = __any_sync(all, i == 40) + 2 * __all_sync(all, i < 40);
}
KERNEL halves(int *to) {
  const unsigned low = 0xffffu, mine = threadIdx.x < 16 ? low : ~low;
  int sum = threadIdx.x;
  for (int flip = 8; flip > 0; flip /= 2) sum += __shfl_xor_sync(mine, sum, flip);
  to[threadIdx.x] = sum;
}
KERNEL rounds(const int *from, int *to) {
  int sum = 0;
  for (int round = 0; round < 4; ++round) sum = 10 * sum + __shfl_sync(0xffffffffu, from[threadIdx.x] + sum, round);
  to[threadIdx.x] = sum;
}
KERNEL short_warp(int *to) { to[threadIdx.x] = __popc(__ballot_sync(0xffffffffu, 1)); }
KERNEL outside(int *to) {
  if (threadIdx.x < 8) to[threadIdx.x] = __shfl_sync(0xffu, 1, 20);
}
KERNEL counted(int *to, unsigned *word, unsigned long long *wide, float *real) {
  atomicAdd(to, 2);
  atomicMax(to + 1, (int)threadIdx.x);
  atomicMin(to + 2, -(int)threadIdx.x);
  atomicCAS(to + 3, 0, (int)threadIdx.x + 5);
  atomicExch(to + 4, 9);
  atomicInc(word, 9);
  atomicOr(word + 1, 1u << threadIdx.x);
  atomicAdd(wide, 1ull << 33);
  atomicAdd(real, 0.5f);
}
KERNEL bits(unsigned *to, float a, double b, int c) {
  to[0] = __float_as_uint(__fmaf_rn(a, a, -1.0f));
  to[1] = (unsigned)__double_as_longlong(b);
  to[2] = c;
  to[3] = __clz(1) + 100 * __ffs(8);
}
KERNEL some_pass_by(int *to) { if (threadIdx.x < 3) __syncthreads(); to[threadIdx.x] = 1; }
KERNEL two_barriers(int *to) {
  if (threadIdx.x < 3) __syncthreads();
  else
    __syncthreads();
}
KERNEL two_masks(int *to) {
  if (threadIdx.x < 3) __syncwarp(0x7);
  else
    __syncwarp(0xffffffff);
}
KERNEL half_a_warp(int *to) { if (threadIdx.x < 16) to[threadIdx.x] = __shfl_sync(0xffffffffu, 1, 0); }
KERNEL not_in_mask(int *to) { __syncwarp(1); }
KERNEL untouched(int *to, i64 n) {}
"""

NAMES = {
    "indices": 1, "reversed": 2, "unwritten": 1, "shuffles": 2, "halves": 1, "rounds": 2, "short_warp": 1,
    "outside": 1, "counted": 4, "bits": 1, "some_pass_by": 1, "two_barriers": 1, "two_masks": 1, "half_a_warp": 1,
    "not_in_mask": 1, "untouched": 1,
}  # fmt: skip
"""Every kernel, and how many of its arguments are buffers."""


@cache
def runtime() -> CudaCPURuntime:
    return CudaCPURuntime(TEXT, NAMES)


def up(array: Array) -> Block:
    block = runtime().allocate(array.nbytes)
    runtime().upload(array, block)
    return block


def down(block: Block, dtype: Any) -> Array:
    found: Array = runtime().download(block, 0, block.nbytes)[0].view(dtype)
    return found


def run(kernel: str, threads: Any, blocks: Any, *args: Any) -> None:
    def three(n: Any) -> launch_shapes.Axes:
        return n if isinstance(n, tuple) else (n, 1, 1)

    runtime().run(kernel, three(threads), three(blocks), *args)


def ints(n: int, value: int = 0) -> Block:
    return up(np.full(n, value, np.int32))


def test_every_thread_of_every_block_runs_once_and_knows_which_it_is() -> None:
    to = ints(60, -1)
    run("indices", (2, 3, 2), (5, 1, 1), to)
    assert down(to, np.int32).tolist() == [1000 * b + t for b in range(5) for t in range(12)]
    run("indices", (1, 1, 1), (3, 5, 4), to)
    assert down(to, np.int32).tolist() == [1000 * b for b in range(60)]


@pytest.mark.parametrize("threads", [1, 31, 33, 256, 1024])
def test_at_a_barrier_everybody_waits_for_everybody(threads: int) -> None:
    given = np.arange(3 * threads, dtype=np.int32)
    to = ints(3 * threads)
    run("reversed", threads, 3, up(given), to)
    assert (down(to, np.int32).reshape(3, threads) == given.reshape(3, threads)[:, ::-1] + 2).all()


def test_shared_memory_is_poisoned_for_every_block() -> None:
    to = ints(128)
    run("unwritten", 64, 2, to)
    assert set(down(to, np.uint32).tolist()) == {0xFFFFFFFF}


def test_shuffles_and_votes_are_those_of_cuda() -> None:
    given = np.arange(64, dtype=np.float32) ** 2
    to = up(np.zeros((6, 64), np.float32))
    run("shuffles", 64, 1, up(given), to)
    found, lanes = down(to, np.float32).reshape(6, 64), np.arange(64)
    warp, part = lanes // 32 * 32, lanes % 8
    sources = (warp + 5, lanes ^ 3, np.where(part < 6, lanes + 2, lanes), np.where(part > 1, lanes - 2, lanes))
    assert all((found[i] == given[source]).all() for i, source in enumerate(sources))
    assert found[4].tolist() == [11.0] * 64
    assert found[5].tolist() == [2.0] * 32 + [1.0] * 32


def test_parts_of_a_warp_meet_apart() -> None:
    to = ints(32)
    run("halves", 32, 1, to)
    assert down(to, np.int32).tolist() == [sum(range(16))] * 16 + [sum(range(16, 32))] * 16


def test_warps_go_at_their_own_pace() -> None:
    given, to = np.arange(96, dtype=np.int32), ints(96)
    run("rounds", 96, 1, up(given), to)
    sums = np.zeros(96, np.int32)
    for turn in range(4):
        sums = 10 * sums + (given + sums)[np.arange(96) // 32 * 32 + turn]
    assert down(to, np.int32).tolist() == sums.tolist()


def test_the_last_warp_of_a_block_may_be_short() -> None:
    to = ints(40)
    run("short_warp", 40, 1, to)
    assert down(to, np.int32).tolist() == [32] * 32 + [8] * 8


def test_a_lane_that_took_no_part_offers_poison() -> None:
    to = ints(8)
    run("outside", 32, 1, to)
    assert down(to, np.int32).tolist() == [-1] * 8


def test_atomics_of_all_sizes() -> None:
    to, word, wide, real = ints(5), ints(2), up(np.zeros(1, np.uint64)), up(np.zeros(1, np.float32))
    run("counted", 32, 2, to, word, wide, real)
    assert down(to, np.int32).tolist() == [128, 31, -31, 5, 9]
    assert down(word, np.uint32).tolist() == [64 % 10, 0xFFFFFFFF]
    assert down(wide, np.uint64).tolist() == [64 << 33] and down(real, np.float32).tolist() == [32.0]


def test_arguments_of_other_types_are_the_first_bytes_of_a_cell() -> None:
    to = ints(4)
    a, b = np.float32(1 + 2**-12), np.float64(np.pi)
    run("bits", 1, 1, to, int(a.view(np.uint32)), int(b.view(np.int64)), -3)
    exact = np.float32(2**-11 + 2**-24)
    expected = [int(exact.view(np.uint32)), int(b.view(np.uint64)) & 0xFFFFFFFF, 2**32 - 3, 31 + 400]
    assert down(to, np.uint32).tolist() == expected


@pytest.mark.parametrize(
    ("kernel", "told"),
    [
        ("some_pass_by", "barrier divergence: 3 of 64 threads wait at the barrier in line "),
        ("two_barriers", "barrier divergence: some threads wait at the barrier in line "),
        (
            "two_masks",
            "warp divergence: lanes fffffff8 of the mask ffffffff wait in line ",
        ),
        ("half_a_warp", "warp divergence: lanes 0000ffff of the mask ffffffff wait in line "),
        ("not_in_mask", "warp divergence: the mask 00000001 in line .* lacks lane 1"),
    ],
)
def test_threads_that_miss_each_other_are_an_error_and_the_next_launch_is_well(kernel: str, told: str) -> None:
    for _ in range(2):
        with pytest.raises(RuntimeError, match=f"^{kernel}: ({told})"):
            run(kernel, 64, 1, ints(64))
        test_at_a_barrier_everybody_waits_for_everybody(33)


def test_a_block_of_too_many_threads_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"^indices: a block has 1 to 1024 threads, not 2048"):
        run("indices", (32, 64, 1), 1, ints(1))


def test_a_wrong_number_of_arguments_is_refused() -> None:
    with pytest.raises(TypeError, match="untouched takes 2 arguments, 1 were given"):
        run("untouched", 1, 1, ints(1))


def test_memory_is_aligned_and_runs_out() -> None:
    assert all(runtime().allocate(n).handle.address % 64 == 0 for n in (1, 24, 100))
    before = runtime().meter.reading()
    with pytest.raises(MemoryError, match="no room for"):
        runtime().allocate(1 << 60)
    assert runtime().meter.since(before) == {}


def test_a_download_never_leaves_its_block() -> None:
    with pytest.raises((TypeError, ValueError)):
        runtime().download(ints(4), 8, 16)


def test_the_shape_is_a_gpus_or_the_one_asked_for() -> None:
    shaped = CudaCPURuntime(TEXT, NAMES, shape=lambda work: ((1, 1, 1), (1, 1, work.rows)))
    to = shaped.allocate(12)
    shaped.launch("indices", Work(1, 3), to)
    assert shaped.download(to, 0, 12)[0].view(np.int32).tolist() == [0, 1000, 2000]


# ---- The compiler ----


def test_the_adapter_describes_itself() -> None:
    told = description(load("cuda-cpu").describe())
    assert told.name == "cuda-cpu" and told.device.startswith("the CUDA kernels on the CPU, g++ ")
    assert told.details["sanitizer"] == "none" and "-ffp-contract=off" in told.details["flags"]


@pytest.mark.parametrize(
    ("name", "told"),
    [("no-such-compiler", "no-such-compiler is not there; `apt install g"), ("/bin/false", "does not answer")],
)
def test_without_a_compiler_it_cannot_run_and_says_how_to_get_one(
    name: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cpp_compiler.COMPILER, name)
    with pytest.raises(CannotRun, match=told):
        CudaCPU()


def test_a_text_that_does_not_compile_is_named_by_its_first_error() -> None:
    cpp_compiler.find()  # there has to be one
    with pytest.raises(CannotRun, match=r"kernels\.cu:2:\d+: error: .*nonsense"):
        CudaCPURuntime('extern "C" __global__ void one() {\n  nonsense(); }', {"one": 0})


def _compiler(folder: Path) -> Path:
    """g++ that counts its calls."""
    made = folder / "counted-c++"
    made.write_text(f'#!/bin/sh\necho "$@" >> {folder}/calls\nexec g++ "$@"\n')
    made.chmod(0o755)
    return made


def test_what_was_compiled_is_kept_until_something_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv(cpp_compiler.COMPILER, str(_compiler(tmp_path)))

    def compiled(text: str) -> int:
        (tmp_path / "calls").write_text("")
        made = CudaCPURuntime(text, {"one": 0})
        made.run("one", (1, 1, 1), (1, 1, 1))
        return sum(" -c " in line for line in (tmp_path / "calls").read_text().splitlines())

    one = 'extern "C" __global__ void one() {}'
    assert [compiled(one), compiled(one), compiled(one + "\n"), compiled(one)] == [2, 0, 1, 0]
    kept = sorted(path.name for path in build_folder.folder("cxx").glob("*/*.*o"))
    assert kept == ["kernels.so"] * 2 + ["program.o"] * 2 + ["scheduler.o"]


def test_another_process_may_have_compiled_it_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    program, found = cpp_compiler.Program('extern "C" __global__ void one() {}', ("one",)), cpp_compiler.find()
    theirs = build_folder.folder("cxx") / program.key(found) / "kernels.so"
    real = cpp_compiler._compile

    def late(*args: Any) -> None:
        real(*args)
        theirs.parent.mkdir()
        theirs.write_text("theirs")

    monkeypatch.setattr(cpp_compiler, "_compile", late)
    assert cpp_compiler.library(program, found) == theirs and theirs.read_text() == "theirs"
    assert len(list(build_folder.folder("cxx").iterdir())) == 2  # the other holds the scheduler


def test_the_key_changes_with_whatever_the_library_depends_on() -> None:
    plain, found = cpp_compiler.Program("text", ("one",)), cpp_compiler.find()
    others = [
        cpp_compiler.Program("other", ("one",)), cpp_compiler.Program("text", ("two",)),
        cpp_compiler.Program("text", ("one",), "address"), cpp_compiler.Program("text", ("one",), flags=("-O1",)),
    ]  # fmt: skip
    keys = {p.key(found) for p in (plain, *others)} | {plain.key(cpp_compiler.Compiler(found.path, "g++ 1.0"))}
    assert len(keys) == 6 and plain.key(found) in keys


def test_a_folder_others_can_write_to_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    usual = build_folder.folder("test")
    assert build_folder.folder("test") == usual and stat.S_IMODE(usual.stat().st_mode) == 0o700
    os.chmod(usual, 0o777)
    other = build_folder.folder("test")
    assert other != usual and stat.S_IMODE(other.stat().st_mode) == 0o700


def test_pyopencl_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    cache_: Any = CudaCPU().open("growing", Config())
    assert cache_.lengths().offset == 0
