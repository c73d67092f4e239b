"""NVRTC: compiles the CUDA text to cubins. It needs neither a driver nor a GPU.

`python -m kvgpu.runtimes.nvidia.nvrtc [ARCHITECTURE ...]` compiles it for every architecture, or for those
named, and prints a table. Exit status: 0 all is there; 1 something does not compile or is missing; 4 there is no
NVRTC here.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import os
import re
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tabulate import tabulate

from kvgpu import kernels
from kvgpu.runtimes import build_folder
from kvspec.errors import CannotRun

ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")
"""A100; H100 and H200; B100 and B200; the RTX cards of the Blackwell generation."""

OPTIONS = ("-std=c++17", "--fmad=false", "--device-as-default-execution-space", "--ptxas-options=--verbose")
"""No contraction, so that sums are the same bits everywhere; plain functions of the common text are device code.
Fast kernels have none either: it costs at most 4 of the 350 to 2,200 instructions of a loop on sm_90."""

ONE_GENERATION = "wgmma."
"""What a text has in it that is for compute capability 9.0 alone, sm_90a to the compiler."""

INSTALL = "pip install 'kvconform[nvrtc]' brings it (about 220 MB)"
NAME = "kernels.cu"
"""What the text is called in the compiler's messages."""


class CompileError(RuntimeError):
    """The text does not compile; the message holds the compiler's, with line numbers of `kernels.source`."""


class Usage(NamedTuple):
    """The needs of a kernel's thread: registers, and bytes that are spilled from them to memory and read back."""

    registers: int
    spilled: int


class Cubin(NamedTuple):
    """A program compiled for one architecture. `usage` is by kernel; `seconds` is what compiling took."""

    architecture: str
    data: bytes
    usage: dict[str, Usage]
    seconds: float

    def lacks(self, names: Iterable[str]) -> list[str]:
        """List those of these kernels that have no code in it."""
        return [name for name in names if f".text.{name}\0".encode() not in self.data]


def binding() -> Any:
    """Import `cuda.bindings.nvrtc`, and load its library. Raises CannotRun where either is missing."""
    try:
        nvrtc = importlib.import_module("cuda.bindings.nvrtc")
        nvrtc.nvrtcVersion()
    except ImportError as e:
        raise CannotRun(f"NVRTC needs the package cuda-bindings ({e}); {INSTALL}") from e
    except RuntimeError as e:
        raise CannotRun(f"the library NVRTC is missing ({str(e).partition(': ')[0]}); {INSTALL}") from e
    return nvrtc


def version(nvrtc: Any) -> str:
    """Give the version of NVRTC, such as 13.0."""
    return ".".join(str(n) for n in nvrtc.nvrtcVersion()[1:])


def architecture(text: str, capability: str) -> str:
    """Name the architecture for a text: with what only this generation has, if the text uses that."""
    return f"sm_{capability}{'a' if ONE_GENERATION in text else ''}"


def compiled(text: str, architecture: str) -> Cubin:
    """Compile CUDA text that includes nothing for an architecture such as "sm_90".

    Raises CompileError, and CannotRun where NVRTC is missing or does not know the architecture.
    """
    nvrtc = binding()
    started = time.perf_counter()
    program = _done(nvrtc, "nvrtcCreateProgram", text.encode(), NAME.encode(), 0, [], [])
    try:
        log = _compile(nvrtc, program, architecture)
        data = _bytes(nvrtc, "CUBIN", program)
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return Cubin(architecture, data, usage(log), time.perf_counter() - started)


def kept(text: str, architecture: str) -> bytes:
    """Give the cubin of a text as `compiled` does: the one kept from an earlier process, if text, options,
    architecture and compiler are the same."""
    asked = text, OPTIONS, architecture, version(binding())
    path = build_folder.folder("cubin") / f"{hashlib.sha256(repr(asked).encode()).hexdigest()[:24]}.cubin"
    if not path.is_file():
        made = path.with_suffix(f".{os.getpid()}")
        made.write_bytes(compiled(text, architecture).data)
        made.replace(path)  # a reader finds a whole file; the last writer wins
    return path.read_bytes()


def _compile(nvrtc: Any, program: Any, architecture: str) -> str:
    """Give the compiler's log. Raises CompileError with it; CannotRun where it does not know the architecture."""
    options = [option.encode() for option in (f"--gpu-architecture={architecture}", *OPTIONS)]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    log = _bytes(nvrtc, "ProgramLog", program).rstrip(b"\0 \n").decode(errors="replace")
    if "--gpu-architecture" in log:
        raise CannotRun(f"NVRTC {version(nvrtc)} is too old for {architecture!r:.60}, or too new")
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise CompileError(f"{architecture}: {status.name}\n{log}")
    return log


def _bytes(nvrtc: Any, what: str, program: Any) -> bytes:
    found = bytes(_done(nvrtc, f"nvrtcGet{what}Size", program))
    _done(nvrtc, f"nvrtcGet{what}", program, found)  # the binding writes into it, immutable or not
    return found


def _done(nvrtc: Any, call: str, *args: Any) -> Any:
    """Call NVRTC, and give its last result. Raises CompileError if the call fails."""
    status, *found = getattr(nvrtc, call)(*args)
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise CompileError(f"{call}: {status.name}")
    return found[-1] if found else None


def usage(log: str) -> dict[str, Usage]:
    """Read the usage of each kernel from the assembler's verbose log."""
    pattern = r"entry function '(\w+)'.*?(\d+) bytes spill stores, (\d+) bytes spill loads.*?Used (\d+) registers"
    found = re.findall(pattern, log, re.DOTALL)
    return {name: Usage(int(registers), int(stores) + int(loads)) for name, stores, loads, registers in found}


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile for each architecture, print a table, and give the exit status."""
    parser = argparse.ArgumentParser(
        "python -m kvgpu.runtimes.nvidia.nvrtc", description="Compile the CUDA kernels."
    )
    parser.add_argument("architectures", nargs="*", default=ARCHITECTURES, metavar="ARCHITECTURE")
    try:
        cubins = [compiled(kernels.source("cuda", "gpu"), a) for a in parser.parse_args(arguments).architectures]
    except (CannotRun, CompileError) as e:
        sys.stderr.write(f"cubins: {e}\n")
        return 4 if isinstance(e, CannotRun) else 1
    print(table(cubins, kernels.KERNELS))
    return _judged(cubins)


def table(cubins: Sequence[Cubin], names: Iterable[str]) -> str:
    """Write a table with a line for each cubin."""
    wanted = list(names)
    rows = [
        (
            cubin.architecture,
            f"{len(wanted) - len(cubin.lacks(wanted))} of {len(wanted)}",
            len(cubin.data),
            f"{cubin.seconds:.2f}",
            max((u.registers for u in cubin.usage.values()), default="?"),
            sum(u.spilled for u in cubin.usage.values()) if cubin.usage else "?",
        )
        for cubin in cubins
    ]
    return tabulate(rows, ("architecture", "kernels", "bytes", "seconds", "registers, at most", "bytes spilled"))


def _judged(cubins: Sequence[Cubin]) -> int:
    missing = {cubin.architecture: cubin.lacks(kernels.KERNELS) for cubin in cubins}
    for architecture, names in missing.items():
        if names:
            sys.stderr.write(f"cubins: {architecture} lacks {', '.join(names)}\n")
    return 1 if any(missing.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
