"""What is there: `python -m tools.on_gpu.probe ADAPTER FILE` writes the machine, the device and its clock as JSON.

Each finding is written as soon as it is there. Exit status: 0 done; 4 nothing can run here; 1 the clock is wrong.
"""

from __future__ import annotations

import importlib
import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from tools.on_gpu import wheels

LIBRARIES = (
    *("numpy", "ml_dtypes", "msgspec", "cupy-cuda13x", "cuda-bindings", "nvidia-cuda-nvrtc", "torch", "triton"),
    *("jax", "flashinfer-python", "onnxruntime", "pytest", "hypothesis"),
)
"""The packages whose versions are noted."""

STREAMED = 256 << 20
"""Bytes that are copied for a look at the clock, on a device whose memory is no cache."""

TIMES = 20
ROOM = 1.05
"""The device may be busy this many times as long as the host waits: their clocks are read at different moments."""


def missing() -> str:
    """Say which packages are missing or too old, and what to do; empty where none is."""
    lacking = [name for name in wheels.NEEDED if not _imports(name)]
    if not lacking:
        from kvconform.generate.strategies import sample

        return sample.too_old()
    return (
        f"missing packages: {', '.join(lacking)}. Run `{wheels.download(lacking)}` on a machine with the network, "
        "carry the folder here, and give it by --wheels"
    )


def _imports(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError as e:
        sys.stderr.write(f"{name}: {e}\n")
        return False
    return True


def machine() -> dict[str, Any]:
    """Describe Python, the packages, and what nvidia-smi says."""
    versions = {d.name.lower(): d.version for d in distributions()}
    names = {name.lower().replace("_", "-"): name for name in LIBRARIES}
    found = {name: versions.get(key, versions.get(name.lower(), "missing")) for key, name in names.items()}
    return {"python": sys.version, "system": platform.platform(), "packages": found, "nvidia-smi": _nvidia_smi()}


def _nvidia_smi() -> str:
    try:
        done = subprocess.run(["nvidia-smi"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError) as e:
        return str(e)
    return done.stdout + done.stderr


def clock(adapter: Any, nbytes: int = STREAMED) -> dict[str, Any]:
    """Time a copy by the device's clock and by the host's, and say the state of the device before and after."""
    before, streams = dict(adapter.state()), adapter.streams(nbytes)
    taken = [(adapter.elapsed(streams.copy), _by_the_host(adapter, streams.copy)) for _ in range(TIMES)]
    device, host = (statistics.median(seconds) for seconds in zip(*taken, strict=True))
    rate = streams.moved("copy") / device / 1e9
    found = {"copied bytes": streams.moved("copy"), "device seconds": device, "host seconds": host, "GB/s": rate}
    return {"clock": adapter.clock(), **found, "before": before, "after": dict(adapter.state())}


def _by_the_host(adapter: Any, work: Callable[[], None]) -> float:
    adapter.synchronise()
    began = time.perf_counter()
    work()
    adapter.synchronise()
    return time.perf_counter() - began


def findings(name: str) -> Iterator[tuple[str, Any]]:
    """Find out one thing after another. Raises CannotRun where there is no device."""
    from kvadapters import find

    yield "machine", machine()
    adapter: Any = find.load(name)
    yield "adapter", adapter.describe()
    yield "clock", clock(adapter)


def main(arguments: Sequence[str]) -> int:
    """Write the findings; give the exit status."""
    name, path = arguments[0], Path(arguments[1])
    if lacking := missing():
        sys.stderr.write(f"{lacking}\n")
        return 4
    from kvspec.errors import CannotRun

    found: dict[str, Any] = {}
    try:
        for what, finding in findings(name):
            found[what] = finding
            path.write_text(json.dumps(found, indent=1, default=str) + "\n", encoding="utf-8")
            print(json.dumps({what: finding}, indent=1, default=str), flush=True)
    except CannotRun as e:
        sys.stderr.write(f"{name} cannot run here: {e}\n")
        return 4
    return _judged(found["clock"])


def _judged(found: dict[str, Any]) -> int:
    """A device cannot be busy for longer than the host waits for it."""
    if found["device seconds"] <= ROOM * found["host seconds"]:
        return 0
    sys.stderr.write(
        f"the clock is wrong: the device was busy for {found['device seconds']:.3g} s, and the host waited for "
        f"{found['host seconds']:.3g} s\n"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
