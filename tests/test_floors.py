"""The floors of the house: nothing imports upwards; what loads in every pytest run, or first, is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[1]
ROOMS = {
    "kvspec": "spec",
    "kvref": "reference",
    "kvadapters": "adapters",
    "kvreports": "reports",
    "kvconform": "conformance",
}
ALLOWED = {
    "kvspec": {"numpy", "ml_dtypes"},
    "kvref": {"numpy", "kvspec"},
    "kvadapters": {"numpy", "kvspec", "pyopencl"},
    "kvreports": {"kvspec", "jinja2", "markupsafe", "tabulate"},
    "kvconform": {"numpy", "kvspec", "kvref", "kvadapters", "kvreports", "hypothesis", "pytest", "tabulate"},
}
HEAVY = ("numpy", "hypothesis", "jinja2", "tabulate", "kvref", "kvreports")


def imports(file: Path) -> Iterator[str]:
    """Top-level packages a file imports, wherever in it the import stands."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            yield (node.module or "").split(".")[0]


def files(package: str) -> list[Path]:
    found = sorted((HOUSE / ROOMS[package] / package).rglob("*.py"))
    assert found
    return found


@pytest.mark.parametrize("package", ROOMS)
def test_nothing_imports_upwards(package: str) -> None:
    allowed = ALLOWED[package] | {package} | sys.stdlib_module_names
    wrong = [f"{f.name}: {i}" for f in files(package) for i in imports(f) if i not in allowed]
    if package == "kvadapters":
        wrong = [w for w in wrong if w != "reference.py: kvref"]
    assert wrong == []


def test_only_the_opencl_runtime_knows_pyopencl() -> None:
    knows = {f.name for f in files("kvadapters") if "pyopencl" in set(imports(f))}
    assert knows <= {"opencl.py", "devices.py"}


@pytest.mark.parametrize("module", ["kvconform.plugin", "kvconform.cli"])
def test_it_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
