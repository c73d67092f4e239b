"""The floors of the house: what each package may import, and what must not be imported for a first line."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

import tools
from support import fakes
from tools import floors
from tools.floors import ROOT, files

STDLIB = frozenset(sys.stdlib_module_names)
SPEC = {"kvspec", "numpy", "ml_dtypes", "msgspec"}
ENGINES = {
    *("mlx", "mlx_lm", "mlx_vlm", "torch", "transformers", "onnx", "onnxruntime"),
    *(
        "litgpt",
        "executorch",
        "torchtune",
        "flax",
        "jax",
        "llama_cpp",
        "gguf",
        "vllm",
        "sglang",
        "lmcache",
        "openvino",
        "openvino_genai",
        "optimum",
        "ctranslate2",
        "onnxruntime_genai",
        "mistralrs",
        "whisper",
        "tvm",
        "tvm_ffi",
        "easydel",
        "eformer",
        "ejkernel",
    ),
}
"""What the adapters of released engines import, each its own."""

FLOORS = {
    "spec/kvspec": SPEC,
    "reference/kvref": SPEC | {"kvref"},
    "adapters/kvadapters": SPEC | {"kvref", "kvadapters"} | ENGINES,
    "adapters/kvgpu": SPEC | {"kvgpu", "pyopencl", "cupy", "tabulate"},
    "reports/kvreports": {"kvspec", "kvreports", "msgspec", "jinja2", "markupsafe", "markdown_it", "tabulate"},
    "conformance/kvconform": SPEC
    | {
        "kvref",
        "kvadapters",
        "kvreports",
        "kvconform",
        "hypothesis",
        "pytest",
        "tabulate",
        "psutil",
        "packaging",
        "distributed",
        "argcomplete",
    },
}
FLOORS["conformance/kvworkshop"] = FLOORS["conformance/kvconform"] | {"kvworkshop", "kvgpu"}
FLOORS["conformance/kvprofile"] = (
    FLOORS["conformance/kvconform"]
    | {"kvprofile"}
    | {
        "triton",  # its kernels have a file of their own, which that peer alone imports
    }
)
"""Beside the standard library, what each package may import; the lowest first."""


MOST_FLOORS = 10
DEEPEST = 25
"""Files of the longest chain of imports, with those by name: from a command, over a chapter's strategies and what
performs operations, to the records."""

HOUSE = (
    *(
        "__main__",
        "testcase",
        "api",
        "cli",
        "commands",
        "plugin",
        "checks",
        "runner",
        "diagnosis",
        "bugs",
        "vectors",
        "log",
        "serving",
        "steps",
    ),
    *("laws", "generate", "judge", "oracle", "worker", "message", "version"),
)
"""The rooms of kvconform, from top to bottom."""


@pytest.mark.parametrize("folder", FLOORS)
def test_no_package_imports_a_higher_one(folder: str) -> None:
    wrong = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in files(folder)
        for name, _ in floors.imported(file)
        if name.partition(".")[0] not in FLOORS[folder] | STDLIB
    }
    assert wrong == set()


@pytest.mark.parametrize("folder", floors.folders())
def test_no_two_rooms_import_each_other(folder: str) -> None:
    assert floors.circles(floors.rooms(folder)) == [], floors.drawing(folder)


@pytest.mark.parametrize("folder", floors.folders())
def test_a_house_has_few_floors(folder: str) -> None:
    assert max(map(len, floors.chains(floors.rooms(folder)).values())) <= MOST_FLOORS, floors.drawing(folder)


def test_no_room_imports_a_higher_one() -> None:
    """A generator makes traces, a worker performs them, an oracle says what must be seen, a judge compares, ..."""
    rooms = floors.rooms("kvconform")
    assert set(rooms) == set(HOUSE), "a new room needs its place in HOUSE"
    height = {room: -place for place, room in enumerate(HOUSE)}
    upwards = {f"{room} -> {below}" for room in rooms for below in rooms[room] if height[below] > height[room]}
    assert upwards == set(), floors.drawing("kvconform")


def test_no_two_files_import_each_other() -> None:
    assert floors.circles(floors.modules()) == []


def test_no_chain_of_imports_is_long() -> None:
    assert len(floors.deepest()) <= DEEPEST, "\n".join(floors.deepest())


def test_every_package_has_its_floor() -> None:
    packages = {p.parent.relative_to(ROOT).as_posix() for p in ROOT.glob("*/kv*/__init__.py")}
    assert packages == set(FLOORS)


def test_the_reference_adapter_alone_touches_the_reference() -> None:
    assert users("kvadapters", "kvref") == {"kvadapters.reference"}


def test_devices_are_touched_in_one_folder() -> None:
    drivers = {"pyopencl", "cupy"}
    touching = {
        file.parent.name
        for file in files("adapters/kvgpu")
        for name, _ in floors.imported(file)
        if name.partition(".")[0] in drivers
    }
    assert touching <= {"runtimes"}


def test_the_reports_know_of_a_run_only_its_record() -> None:
    assert users("kvreports", "kvspec")
    for harness in ("kvspec.session", "kvspec.wire.framing", "kvspec.trace", "kvspec.masks"):
        assert users("kvreports", harness) == set()


def users(package: str, used: str) -> set[str]:
    """The modules of a package that import a module, or one within it."""
    found = {name: targets for name, targets in floors.modules().items() if name.startswith(package)}
    return {name for name, targets in found.items() if any(f"{t}.".startswith(f"{used}.") for t in targets)}


TOOLS = [name for _, name, _ in pkgutil.walk_packages(tools.__path__, "tools.") if ".test_" not in name]
HEAVY = ("numpy", "hypothesis", "ml_dtypes", "jinja2", "tabulate", "kvspec", "kvref", "kvadapters")


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import kvconform.plugin", HEAVY),
        ("import kvconform.cli; kvconform.cli.parser()", (*HEAVY, "pytest")),
        ("import kvadapters.find", ("pyopencl", "cupy", "kvref", "hypothesis", "pytest")),
        ("import kvconform.commands.run", ("pyopencl", "cupy")),
        (f"import {', '.join(TOOLS)}", ("hypothesis", "pytest")),  # their sessions install neither
    ],
    ids=lambda given: given[:40] if isinstance(given, str) else "",
)
def test_what_loads_first_imports_nothing_heavy(statement: str, heavy: tuple[str, ...]) -> None:
    script = f"{statement}; import sys; print(*[m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], env=fakes.environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
