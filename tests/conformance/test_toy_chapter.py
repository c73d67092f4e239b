"""A chapter more is its own files and one line: a toy is added to a copy of the tree, and judges a toy adapter."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.floors import PACKAGES

ROOT = Path(__file__).parents[2]

TOY = ROOT / "tests" / "support" / "toy_chapter"
MOST_FILES = 10


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages with the files of the toy chapter in their rooms, and one line in the registry."""
    copy = tmp_path_factory.mktemp("tree")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__", "vectors"))
    (copy / "spec/kvspec/vectors").symlink_to(ROOT / "spec/kvspec/vectors")
    shutil.copytree(ROOT / "conformance/kvconform/vectors", copy / "conformance/kvconform/vectors")
    for file in (f for f in TOY.rglob("*.txt") if f.is_file()):
        target = copy / file.relative_to(TOY).with_suffix("")
        target.write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    names = copy / "spec/kvspec/chapters/__init__.py"
    names.write_text(names.read_text(encoding="utf-8").replace('    "rope",\n', '    "rope",\n    "toy",\n'))
    return copy


def judged(tree: Path, adapter: str, level: str) -> tuple[int, dict[str, Any]]:
    """The exit status and the record of a run in the copy, on the adapter that claims this level."""
    module = tree / "toy_adapter.py"
    template = (TOY / "toy_adapter.py.txt").read_text(encoding="utf-8")
    module.write_text(template.replace("@level@", level), encoding="utf-8")
    path = os.pathsep.join([*(str((tree / p).parent) for p in PACKAGES), str(tree)])
    command = [sys.executable, "-m", "kvconform", "run", f"toy_adapter:{adapter}", "--traces", "20"]
    done = subprocess.run(
        [*command, "--processes", "1", "--format", "json"],
        capture_output=True,
        text=True,
        cwd=tree,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=300,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def verdicts(record: dict[str, Any]) -> dict[str, str]:
    """What was judged of the toy's clauses."""
    return {c["id"]: c["verdict"] for c in record["clauses"] if c["chapter"] == "toy"}


def test_the_toy_is_few_files() -> None:
    assert len([f for f in TOY.rglob("*.txt") if f.is_file()]) <= MOST_FILES


@pytest.mark.parametrize("level", ["visible", "storage"])
def test_a_toy_chapter_judges_a_toy_adapter(tree: Path, level: str) -> None:
    status, record = judged(tree, "Adapter", level)
    assert (status, record["problems"]) == (0, [])
    assert verdicts(record) == dict.fromkeys(("TOY-1", "TOY-2", "TOY-3"), "PASS")


def test_a_fault_of_the_toy_adapter_fails_its_clause(tree: Path) -> None:
    status, record = judged(tree, "Faulty", "visible")
    assert (status, verdicts(record)["TOY-1"]) == (1, "FAIL")
    ops = [f["trace"]["ops"] for f in record["failures"] if "TOY-1" in f["clauses"]]
    assert ops and all(sum(len(op.get("ops", "1")) for op in each) <= 3 for each in ops)
