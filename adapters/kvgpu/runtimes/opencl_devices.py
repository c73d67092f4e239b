"""Finds an OpenCL device that works: tries each with a kernel, best first, until one runs it.

The trial happens in this process. A driver may kill the process instead of raising: then the harness, which runs
adapters in their own processes, reports it, and KVCONFORM_OPENCL can choose another device.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from kvgpu.runtimes import pocl_cpu
from kvspec.errors import CannotRun

SELECT = "KVCONFORM_OPENCL"
"""Environment variable: only devices whose label contains this text, in any case, are tried."""

INSTALL = "pip install 'kvconform[opencl]' brings PyOpenCL and two CPU runtimes"
UNKNOWN_CPU = "unknown target CPU"
"""What PoCL's compiler says of a processor that it does not know."""

TRIAL = "__kernel void trial(__global int *x) { x[get_global_id(0)] = 40 + (int)get_global_id(0); }"

KINDS = ("a GPU", "an installed CPU runtime", "PoCL on the CPU", "Oclgrind, a simulator on the CPU")
"""Kinds of devices, best first."""

CPUS = KINDS[1:3]
"""Those that compile for the CPU."""

GPU = "a GPU with its vendor's OpenCL driver"
CPU = "Intel's runtime for CPUs (pip install 'kvconform[opencl-intel]'; it runs on AMD too)"
FASTER = dict(zip(KINDS, ("", GPU, GPU, f"{GPU}, or {CPU}"), strict=True))
"""Advice for each kind: what would be faster."""


AFFINITY = "POCL_AFFINITY"
"""Environment variable of PoCL: with 1, its thread i stays on core i. On a busy machine two of its threads share a
core otherwise, and a long copy takes one of two times, the one twice the other."""

PINNED = {True: "each stays on a core of its own", False: "the system moves them between cores"}
"""What a record says of PoCL's threads."""

THREADS, CALLER = "pthread-", "basic-"
"""How the names of PoCL's devices begin: the one with threads, and the one that runs commands on the calling
thread."""


@dataclass(frozen=True)
class Candidate:
    """A candidate device. `device` is PyOpenCL's object; `gpu` tells whether the device calls itself a GPU.

    `caller` is a device of the same memory that runs commands on the calling thread, if there is one."""

    platform: str
    version: str
    name: str
    gpu: bool
    device: Any = None
    caller: Any = None

    @property
    def kind(self) -> str:
        """Give one of KINDS. Oclgrind claims to be every kind of device, so its platform's name decides first."""
        if "oclgrind" in self.platform.lower():
            return KINDS[3]
        pocl = "portable computing language" in self.platform.lower()
        return KINDS[0] if self.gpu else KINDS[2] if pocl else KINDS[1]

    @property
    def label(self) -> str:
        """Give platform, version and device in words."""
        version = re.sub(r"^OpenCL [\d.]+ ", "", self.version).split("  ")[0].strip(" ()")
        return f"{self.platform.strip()} ({version}): {self.name.strip()}"

    @property
    def rank(self) -> tuple[int, float]:
        """Rank a device, lower is better: by kind, then by the runtime's version, newest first."""
        return KINDS.index(self.kind), -self.pocl

    @property
    def pocl(self) -> float:
        """Give the version of PoCL; 0 for other platforms."""
        own = re.search(r"(?:PoCL|pocl) (\d+\.\d+)", self.version)
        return float(own[1]) if own else 0.0

    @property
    def lanes(self) -> int:
        """Give the floats of a vector. On processors without registers of 16 floats PoCL 3.0 is slower by 16, and
        ended the process at the maximum of two such vectors."""
        return 8 if 0.0 < self.pocl < 3.1 and not pocl_cpu.wide() else 16


def has_all_cores() -> bool:
    """Whether this process may use every core: PoCL pins its thread i to core i, allowed or not."""
    return os.sched_getaffinity(0) == set(range(os.cpu_count() or 0)) if hasattr(os, "sched_getaffinity") else False


@dataclass(frozen=True)
class Choice:
    """The chosen device, and the result for every device tried, in order."""

    taken: Candidate
    context: Any
    tried: tuple[tuple[str, str], ...]

    def describe(self) -> dict[str, Any]:
        """Describe the choice for the adapter's details."""
        kind, pinned = self.taken.kind, PINNED[os.environ.get(AFFINITY) == "1"]
        return {
            "taken": self.taken.label,
            "why": f"{kind}; the first that compiled and ran a kernel",
            "tried": [{"device": device, "result": result} for device, result in self.tried],
            **({"faster": FASTER[kind]} if FASTER[kind] else {}),
            **({"threads": pinned} if self.taken.pocl and not self.taken.gpu else {}),
        }


def choose(cl: Any, wanted: str | None = None) -> Choice:
    """Try the devices in order of rank. Raises CannotRun, which says what was tried and what to install."""
    text = os.environ.get(SELECT, "") if wanted is None else wanted
    tried: list[tuple[str, str]] = []
    ranked = sorted(candidates(cl), key=lambda c: c.rank)
    for i, candidate in enumerate(ranked):
        result, context = _trial(cl, candidate, text)
        tried.append((candidate.label, result))
        if context is not None:
            tried += [(c.label, "ranked below, not tried") for c in ranked[i + 1 :]]
            return Choice(candidate, context, tuple(tried))
    found = "; ".join(f"{device}: {result}" for device, result in tried) or "there is none"
    raise CannotRun(f"no OpenCL device works ({found}); {INSTALL}")


def _trial(cl: Any, candidate: Candidate, text: str) -> tuple[str, Any]:
    """Try a device; give the result, and a context if it works."""
    if text.lower() not in candidate.label.lower():
        return f"left out by {SELECT}={text}", None
    devices = [d for d in (candidate.device, candidate.caller) if d is not None]
    result, context = _attempt(cl, devices)
    if UNKNOWN_CPU in result and (known := pocl_cpu.tell(devices)):
        result, context = _attempt(cl, devices)
        return f"{result}; it does not know this processor, and was told that it is a {known}", context
    return result, context


def _attempt(cl: Any, devices: Sequence[Any]) -> tuple[str, Any]:
    try:
        return "works", _proven(cl, *devices)
    except Exception as e:
        return f"failed: {_first_line(e)}", None


def candidates(cl: Any) -> Iterator[Candidate]:
    """List all devices of all platforms; a platform that fails to answer has none."""
    try:
        platforms = cl.get_platforms()
    except cl.Error:
        return
    for platform in platforms:
        try:
            devices = platform.get_devices()
        except cl.Error:
            continue
        for d in devices:
            gpu, caller = bool(d.type & cl.device_type.GPU), _caller(d, devices)
            if _threads(d) not in {other.name for other in devices}:
                yield Candidate(platform.name, platform.version, d.name, gpu, d, caller)


def _threads(device: Any) -> str | None:
    """Give the name of the device with threads beside a device of PoCL that has none."""
    basic = device.name.startswith(CALLER)
    return THREADS + device.name.removeprefix(CALLER) if basic else None


def _caller(device: Any, devices: Sequence[Any]) -> Any:
    """Give the device without threads beside one with threads; None if there is none."""
    return next((d for d in devices if _threads(d) == device.name), None)


def _proven(cl: Any, *devices: Any) -> Any:
    """Give a context of a device, or two of the same memory, after each compiles and runs a kernel correctly."""
    with _silence():
        context = cl.Context(list(devices))
        trial = build(cl, context, TRIAL).trial
        for device in devices:
            _run(cl, cl.CommandQueue(context, device), trial)
    return context


def _run(cl: Any, queue: Any, trial: Any) -> None:
    found = np.zeros(4, np.int32)
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, found.nbytes)
    trial(queue, (4,), (1,), buffer)
    cl.enqueue_copy(queue, found, buffer)
    if found.tolist() != [40, 41, 42, 43]:
        raise RuntimeError(f"its kernel computed {found.tolist()}")


def build(cl: Any, context: Any, text: str) -> Any:
    """Compile without showing warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cl.Program(context, text).build(cache_dir=False)


@contextmanager
def _silence() -> Iterator[None]:
    """Silence standard error, because a compiler that does not know this CPU prints before it fails."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _first_line(e: Exception) -> str:
    lines = [line.strip() for line in str(e).splitlines() if line.strip()]
    telling = [line for line in lines if "error" in line.lower()]
    return f"{type(e).__name__}: {(telling or lines or [''])[0]:.200}"
