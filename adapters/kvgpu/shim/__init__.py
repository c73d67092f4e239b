"""Headers by which a C++ compiler compiles the CUDA text for the CPU: CUDA's words, and the threads of a block."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parent
"""Where the headers are, and `scheduler.cpp`."""


def text() -> str:
    """All files one behind the other: a compiled program depends on them as on its kernels."""
    files = sorted(p for p in FOLDER.iterdir() if p.suffix in (".h", ".cpp"))
    return "".join(f"// {p.name}\n{p.read_text(encoding='utf-8')}" for p in files)


def program(kernels: Iterable[str], shared: int = 0) -> str:
    """The translation unit that makes these kernels of `kernels.cu` callable from outside. A launch asks for
    `shared` bytes of shared memory; if there are any, the unit includes the words of `warp_cuda.h`."""
    headers = ("cuda.h", "meet.h", "hopper.h", "kernels.cu") if shared else ("cuda.h", "meet.h", "kernels.cu")
    lines = [f"#define SHIM_DYNAMIC {shared}"] * bool(shared) + [f'#include "{name}"' for name in headers]
    return "".join(f"{line}\n" for line in (*lines, *(f"SHIM_EXPORT({name})" for name in kernels)))
