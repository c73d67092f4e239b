"""The checks: how a process is started so that a tool watches its kernels, and how the tool's log is read."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from kvgpu import kernels
from kvgpu.runtimes import cpp_compiler, opencl_devices
from kvspec.errors import CannotRun
from tools.sanitizers import findings, probes, steps, warps
from tools.sanitizers.findings import Report

LOG = "OCLGRIND_LOG"
"""Environment variable: where Oclgrind writes what it finds."""


@dataclass(frozen=True)
class Check:
    """One way of watching. `dialect` is the text it watches; `poison` whether unwritten rows are made NaN, and
    guard bands written and checked; `cases` names the kernel whose cases it watches, if these and nothing else;
    `device` is what the texts are for."""

    name: str
    dialect: Literal["cl", "cuda"]
    read: Callable[[str], Iterator[Report]]
    sanitizer: str = ""
    poison: bool = True
    cases: str = ""
    device: kernels.Device = "any"

    @property
    def names(self) -> dict[str, int]:
        """The kernels of the program, the probes among them, and their buffers."""
        return kernels.KERNELS | probes.names(self.dialect)

    @property
    def text(self) -> str:
        """The program that is watched: the real kernels, then the probes."""
        if self.cases:
            return steps.text() if self.cases == steps.KERNEL else warps.text(self.cases)
        return kernels.source(self.dialect, self.device) + probes.text(self.dialect)

    def prepare(self, text: str) -> None:
        """Do what need not be watched. Raises CannotRun where something is missing."""
        if self.sanitizer and not self.cases:
            cpp_compiler.library(cpp_compiler.Program(text, tuple(self.names), self.sanitizer), cpp_compiler.find())

    def command(self, logs: Path, first_only: bool) -> list[str]:
        """What to start Python with. Raises CannotRun where the tool is missing."""
        settings = _oclgrind(logs, self.poison) if not self.sanitizer else _gcc(self.sanitizer, logs, first_only)
        straight = [_program("setarch", "util-linux"), "-R"] if self.sanitizer == "thread" else []
        return [*straight, _program("env", "coreutils"), *(f"{k}={v}" for k, v in settings.items()), sys.executable]

    def found(self, logs: Path) -> Iterator[Report]:
        """The reports in all logs, each once."""
        every = (r for log in sorted(logs.iterdir()) for r in self.read(log.read_text(errors="replace")))
        yield from {(r.kind, r.kernel, r.line): r for r in every}.values()


def _program(name: str, package: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise CannotRun(f"the program {name} is not there; it is of the package {package}")
    return path


def _gcc(sanitizer: str, logs: Path, first_only: bool) -> dict[str, str]:
    """The sanitizer's library must be there before Python is; it writes a log for each process."""
    library = "libasan.so" if sanitizer == "address" else "libtsan.so"
    options = {
        "address": f"log_path={logs}/log:detect_leaks=0:allocator_may_return_null=1:halt_on_error=1",
        "thread": f"log_path={logs}/log:halt_on_error={int(first_only)}:history_size=1:report_signal_unsafe=0",
    }
    return {
        "LD_PRELOAD": _library(library),
        "ASAN_OPTIONS" if sanitizer == "address" else "TSAN_OPTIONS": options[sanitizer],
        "OPENBLAS_NUM_THREADS": "1",
    }


def _library(name: str) -> str:
    """Where the compiler has a sanitizer's library: it answers with a path, or with the bare name."""
    found = cpp_compiler.find()
    command = [found.path, f"-print-file-name={name}"]
    path = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    if not os.path.isabs(path):
        raise CannotRun(f"{found.label} has no {name}; Debian's g++ brings it, Fedora's is in a package of its own")
    return os.path.realpath(path)


def _oclgrind(logs: Path, poison: bool) -> dict[str, str]:
    """Without -cl-opt-disable kernels are skipped silently; with several threads reports name wrong lines.

    Uninitialised reads are looked for alone, and without poison, which initialises everything.
    """
    if find_spec("pyopencl") is None:
        raise CannotRun(f"PyOpenCL is not there, and with it Oclgrind; {opencl_devices.INSTALL}")
    wanted = ("DATA_RACES", "UNIFORM_WRITES") if poison else ("UNINITIALIZED",)
    return {
        **{f"OCLGRIND_{name}": "1" for name in (*wanted, "NUM_THREADS")},
        "OCLGRIND_BUILD_OPTIONS": "-cl-opt-disable",
        LOG: str(logs / "log"),
    }


CHECKS = {
    "asan": Check("asan", "cuda", findings.asan, sanitizer="address"),
    "tsan": Check("tsan", "cuda", findings.tsan, sanitizer="thread"),
    "asan-copies": Check("asan-copies", "cuda", findings.asan, sanitizer="address", device="gpu"),
    "tsan-copies": Check("tsan-copies", "cuda", findings.tsan, sanitizer="thread", device="gpu"),
    "asan-warps": Check("asan-warps", "cuda", findings.asan, sanitizer="address", cases="attend_warps"),
    "tsan-warps": Check("tsan-warps", "cuda", findings.tsan, sanitizer="thread", cases="attend_warps"),
    "asan-prefill": Check("asan-prefill", "cuda", findings.asan, sanitizer="address", cases="prefill_warps"),
    "tsan-prefill": Check("tsan-prefill", "cuda", findings.tsan, sanitizer="thread", cases="prefill_warps"),
    "asan-wide": Check("asan-wide", "cuda", findings.asan, sanitizer="address", cases="wide_warps"),
    "tsan-wide": Check("tsan-wide", "cuda", findings.tsan, sanitizer="thread", cases="wide_warps"),
    "asan-hopper": Check("asan-hopper", "cuda", findings.asan, sanitizer="address", cases="hopper_prefill"),
    "asan-latent": Check("asan-latent", "cuda", findings.asan, sanitizer="address", cases="hopper_latent"),
    "asan-step": Check("asan-step", "cuda", findings.asan, sanitizer="address", cases=steps.KERNEL),
    "tsan-step": Check("tsan-step", "cuda", findings.tsan, sanitizer="thread", cases=steps.KERNEL),
    "oclgrind": Check("oclgrind", "cl", findings.oclgrind),
    "oclgrind-uninitialised": Check("oclgrind-uninitialised", "cl", findings.oclgrind, poison=False),
}

WATCHED = ("copies", "warps", "prefill", "wide", "step")
"""What both sanitizers of GCC watch beside the common text. The kernels for compute capability 9.0 are watched for
memory errors only."""

TOOLS = {
    "asan": ("asan", *(f"asan-{of}" for of in (*WATCHED, "hopper", "latent"))),
    "tsan": ("tsan", *(f"tsan-{of}" for of in WATCHED)),
    "oclgrind": ("oclgrind", "oclgrind-uninitialised"),
}
"""The checks of each tool."""
