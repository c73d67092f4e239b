"""Tells OpenCL's loader where pip put Intel's CPU runtime (`pip install 'kvconform[opencl-intel]'`), and tells PoCL
which devices to make.

Intel's package brings a file for the loader, but in a folder where no loader looks, and that file names a library
that does not exist. The package's metadata says where the library really is.
"""

from __future__ import annotations

import hashlib
import os
from importlib import metadata
from pathlib import Path

from kvgpu.runtimes import build_folder

PACKAGE, LIBRARY = "intel-opencl-rt", "libintelocl.so"

VENDORS = "OCL_ICD_VENDORS"
"""Environment variable: the folder in which the loader looks for files that name drivers."""

POCL, DEVICES = "pocl-binary-distribution", "POCL_DEVICES"
"""The package of PoCL, and the environment variable that names its devices."""

BOTH = "pthread basic"
"""A device with threads, and one that runs commands on the calling thread: see `opencl_queues`."""

SYSTEM = Path("/etc/OpenCL/vendors")
"""The folder in which the loader looks by default."""


def library() -> Path | None:
    """Give the path of Intel's runtime; None where it is not installed."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    found = (Path(str(file.locate())).resolve() for file in files if file.name == LIBRARY)
    return next((path for path in found if path.exists()), None)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def announce() -> None:
    """Have the loader find Intel's runtime beside the system's drivers, unless the user chose a folder.

    PoCL gets two devices for the CPU, where pip brought a PoCL that has these names, unless the user chose others.
    """
    if _version(POCL).startswith("3."):
        os.environ.setdefault(DEVICES, BOTH)
    intel = library()
    if intel is None or VENDORS in os.environ:
        return
    folder = build_folder.folder(f"vendors-{hashlib.sha256(str(intel).encode()).hexdigest()[:8]}")
    for driver in SYSTEM.glob("*.icd"):
        _write(folder / driver.name, driver.read_text())
    _write(folder / "intel-from-pip.icd", f"{intel}\n")
    os.environ[VENDORS] = str(folder)


def _write(file: Path, text: str) -> None:
    """Write a file in one step: another process may be reading it."""
    if not file.exists() or file.read_text() != text:
        new = file.with_suffix(f".{os.getpid()}")
        new.write_text(text)
        new.replace(file)
