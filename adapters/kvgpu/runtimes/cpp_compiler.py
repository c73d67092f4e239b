"""The C++ compiler: compiles the CUDA text and the shim to a shared library, kept for later runs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from kvgpu import shim
from kvgpu.runtimes import build_folder
from kvspec.errors import CannotRun

COMPILER = "KVCONFORM_CXX"
"""Environment variable: the C++ compiler to use; by default g++."""

INSTALL = f"`apt install g++` brings it, or name another in {COMPILER}"

FLAGS = ("-O2", "-g1", "-std=c++17", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-fno-strict-aliasing")
"""No contraction, because results are compared bit by bit; nothing that binds the library to this machine."""

SANITIZERS = {
    "": (),
    "address": ("-fsanitize=address", "-fsanitize-sections=kv_shared", "-fno-omit-frame-pointer"),
    "thread": ("-fsanitize=thread", "-fno-omit-frame-pointer"),
}
"""Flags that each sanitizer adds for the kernels. The scheduler is built without them, but knows of it."""

KNOWN_TO_THE_SCHEDULER = {
    "": (),
    "address": ("-DSHIM_SANITIZED",),
    "thread": ("-DSHIM_SANITIZED", "-DSHIM_THREAD_SANITIZER"),
}


class DoesNotCompile(CannotRun):
    """A compiler that is there does not take the kernels."""


@dataclass(frozen=True)
class Compiler:
    """A working compiler. `version` is the first line of its own description."""

    path: str
    version: str

    @property
    def label(self) -> str:
        """Give its name and bare version, such as `g++ 12.2.0`."""
        return f"{Path(self.path).name} {self.version.split()[-1]}"


@dataclass(frozen=True)
class Program:
    """The input of a compilation: CUDA text, its kernels to call, the sanitizer, and the bytes of shared memory
    that a launch asks for."""

    text: str
    kernels: tuple[str, ...]
    sanitizer: str = ""
    flags: tuple[str, ...] = field(default=FLAGS)
    shared: int = 0

    @property
    def unit(self) -> str:
        """Give the text that is compiled, around the CUDA text."""
        return shim.program(self.kernels, self.shared)

    def key(self, compiler: Compiler) -> str:
        """Name the library; the name changes with everything it depends on."""
        return self._hash(compiler, self.text, self.unit)

    def scheduler_key(self, compiler: Compiler) -> str:
        """Name what libraries of different texts have in common."""
        return self._hash(compiler, "scheduler")

    def _hash(self, compiler: Compiler, *texts: str) -> str:
        parts = (compiler.path, compiler.version, *texts, shim.text(), self.sanitizer)
        watched = SANITIZERS[self.sanitizer] + KNOWN_TO_THE_SCHEDULER[self.sanitizer]
        return hashlib.sha256(repr((*parts, self.flags, watched)).encode()).hexdigest()[:24]


def find() -> Compiler:
    """Find the compiler. Raises CannotRun, which says how to get one."""
    name = os.environ.get(COMPILER, "") or "g++"
    path = shutil.which(name)
    if path is None:
        raise CannotRun(f"the C++ compiler {name} is not there; {INSTALL}")
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    if said.returncode != 0 or not said.stdout.strip():
        raise CannotRun(f"{path} --version does not answer; {INSTALL}")
    return Compiler(path, said.stdout.splitlines()[0])


def library(program: Program, compiler: Compiler) -> Path:
    """Give the compiled library, a kept one or a new one. Raises CannotRun if it does not compile."""
    scheduler = _kept(program.scheduler_key(compiler), lambda made: _compile_scheduler(program, compiler, made))
    known = scheduler / "scheduler.o"
    return _kept(program.key(compiler), lambda made: _compile(program, compiler, known, made)) / "kernels.so"


def _kept(key: str, make: Callable[[Path], None]) -> Path:
    """Give the folder of a key; `make` fills it, if it is not there yet."""
    kept = build_folder.folder("cxx") / key
    if not kept.is_dir():
        made = Path(tempfile.mkdtemp(dir=kept.parent))
        try:
            make(made)
            with suppress(OSError):  # another process was faster, and made the same
                made.rename(kept)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return kept


def _compile_scheduler(program: Program, compiler: Compiler, folder: Path) -> None:
    known = KNOWN_TO_THE_SCHEDULER[program.sanitizer]
    source, made = shim.FOLDER / "scheduler.cpp", folder / "scheduler.o"
    _call([compiler.path, *program.flags, f"-I{shim.FOLDER}", *known, "-c", str(source), "-o", str(made)])


def _compile(program: Program, compiler: Compiler, scheduler: Path, folder: Path) -> None:
    (folder / "kernels.cu").write_text(program.text, encoding="utf-8")
    (folder / "program.cpp").write_text(program.unit, encoding="utf-8")
    watched = SANITIZERS[program.sanitizer]
    common = [compiler.path, *program.flags, f"-I{shim.FOLDER}", f"-I{folder}", *watched]
    _call([*common, "-c", str(folder / "program.cpp"), "-o", str(folder / "program.o")])
    _call([*common, "-shared", str(scheduler), str(folder / "program.o"), "-o", str(folder / "kernels.so")])


def _call(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.splitlines() or [f"exit status {done.returncode}"]
        telling = next((line for line in said if "error" in line.lower()), said[0])
        raise DoesNotCompile(f"the CUDA kernels do not compile: {telling.strip()}")
