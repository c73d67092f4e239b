"""The floors of the house: what each package may import, and what must not be imported for a first line."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import kvspec
from support import fakes

ROOT = Path(kvspec.__file__).parents[2]
STDLIB = frozenset(sys.stdlib_module_names)
SPEC = {"kvspec", "numpy", "ml_dtypes"}
FLOORS = {
    "spec/kvspec": SPEC,
    "reference/kvref": SPEC | {"kvref"},
    "adapters/kvadapters": SPEC | {"kvref", "kvadapters", "pyopencl", "cupy", "tabulate"},
    "reports/kvreports": {"kvspec", "kvreports", "jinja2", "markupsafe", "tabulate"},
    "conformance/kvconform": SPEC
    | {
        "kvref",
        "kvadapters",
        "kvreports",
        "kvconform",
        "hypothesis",
        "pytest",
        "tabulate",
        "pebble",
        "psutil",
        "distributed",
    },
}
"""Beside the standard library, what each package may import; the lowest first."""


def imports(file: Path) -> Iterator[str]:
    """The packages a module imports, wherever in its text."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            yield node.module or ""


def modules(folder: str) -> list[Path]:
    found = sorted((ROOT / folder).rglob("*.py"))
    assert found, f"no modules under {folder}"
    return found


@pytest.mark.parametrize("folder", FLOORS)
def test_nothing_imports_upwards(folder: str) -> None:
    wrong = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in modules(folder)
        for name in imports(file)
        if name.partition(".")[0] not in FLOORS[folder] | STDLIB
    }
    assert wrong == set()


def test_every_package_has_its_floor() -> None:
    packages = {p.parent.relative_to(ROOT).as_posix() for p in ROOT.glob("*/kv*/__init__.py")}
    assert packages == set(FLOORS)


def test_the_reference_adapter_alone_touches_the_reference() -> None:
    who = {f.name for f in modules("adapters/kvadapters") for n in imports(f) if n.partition(".")[0] == "kvref"}
    assert who == {"reference.py"}


def test_devices_are_touched_in_one_folder() -> None:
    drivers = {"pyopencl", "cupy"}
    who = {
        f.parent.name for f in modules("adapters/kvadapters") for n in imports(f) if n.partition(".")[0] in drivers
    }
    assert who <= {"runtimes"}


def test_the_reports_know_of_a_run_only_its_record() -> None:
    used = {n for f in modules("reports/kvreports") for n in imports(f) if n.startswith("kvspec")}
    assert used and not used & {"kvspec.session.driver", "kvspec.wire.messages", "kvspec.trace", "kvspec.masks"}


HEAVY = ("numpy", "hypothesis", "ml_dtypes", "jinja2", "tabulate", "kvspec", "kvref", "kvadapters")


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import kvconform.plugin", HEAVY),
        ("import kvconform.cli; kvconform.cli.parser()", (*HEAVY, "pytest")),
        ("import kvadapters.find", ("pyopencl", "cupy", "kvref", "hypothesis", "pytest")),
    ],
)
def test_what_loads_first_imports_nothing_heavy(statement: str, heavy: tuple[str, ...]) -> None:
    script = f"{statement}; import sys; print(*[m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], env=fakes.environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_the_suite_needs_no_device_to_be_imported() -> None:
    script = "import kvconform.commands.run, sys; print(*[m for m in ('pyopencl', 'cupy') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], env=fakes.environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
