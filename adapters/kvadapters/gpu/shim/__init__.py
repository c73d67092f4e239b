"""C++ that lets a C++ compiler for the CPU take the CUDA text: the words of CUDA, and the threads of a block."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parent
"""Where the headers are, and `scheduler.cpp`."""


def text() -> str:
    """All files one behind the other: what a compiled program depends on beside its kernels."""
    files = sorted(p for p in FOLDER.iterdir() if p.suffix in (".h", ".cpp"))
    return "".join(f"// {p.name}\n{p.read_text(encoding='utf-8')}" for p in files)


def program(kernels: Iterable[str]) -> str:
    """The translation unit that makes these kernels of `kernels.cu` callable from outside."""
    exports = "".join(f"SHIM_EXPORT({name})\n" for name in kernels)
    return f'#include "cuda.h"\n#include "meet.h"\n#include "kernels.cu"\n{exports}'
