"""Where a record comes from: the text of the suite, and the machine."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

PACKAGES = ("numpy", "ml_dtypes", "hypothesis", "pytest", "pyopencl", "cupy")
"""Packages whose versions a record tells."""


def suite_digest(without: str = "") -> str:
    """A hash of the suite's own text and its tables, without those in folders of the name given."""
    every = sorted(f for f in Path(__file__).parents[1].rglob("*") if f.suffix in (".py", ".toml"))
    files = (f for f in every if f.parent.name != without)
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()[:16]


def machine() -> dict[str, Any]:
    """Where the run was made."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "cpu": _cpu(),
        "cores": os.cpu_count() or 0,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "python": platform.python_version(),
        "packages": {p: v for p in PACKAGES if (v := _version(p))},
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
