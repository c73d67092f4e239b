"""`kvconform new-adapter` writes a package that installs, is found by name, and passes from the first minute."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from kvspec.chapters import GENERAL
from support.running import judging, site_package
from support.running.command_line import kvconform


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new")
    done = kvconform("new-adapter", "my-engine", "--into", folder)
    assert done.returncode == 0 and "kvconform smoke my-engine-ring" in done.stderr and done.stdout == ""
    return folder / "kvadapter-my-engine"


@pytest.fixture(scope="module")
def site(package: Path) -> Path:
    """A folder in which the package is installed."""
    return site_package.installed(package, package.parent / "site")


def test_the_package_is_whole_and_its_adapter_short(package: Path) -> None:
    files = {str(p.relative_to(package)) for p in package.rglob("*") if p.is_file()}
    adapter, engine = "kvadapter_my_engine/__init__.py", "kvadapter_my_engine/engine.py"
    assert files == {"pyproject.toml", "README.md", adapter, engine, "tests/test_conformance.py"}
    assert len((package / adapter).read_text().splitlines()) < 40
    assert not any("@" in (package / f).read_text() for f in files)
    for file in (f for f in files if f.endswith(".py")):
        ast.parse((package / file).read_text())


def test_the_installed_adapter_is_found_by_its_name_and_passes_smoke(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(site))
    done = kvconform("smoke", "my-engine-growing")
    assert done.returncode == 0 and "ok    growing: free" in done.stdout, done.stdout + done.stderr
    assert {"my-engine-growing", "my-engine-ring"} <= set(kvconform("list").stdout.split())


@pytest.mark.parametrize("kind", ["growing", "ring"])
def test_the_adapters_conform_in_all_they_claim(kind: str, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(package))
    seen = judging.record_of(f"kvadapter_my_engine:{kind}", (kind, "mask"), traces=3)
    assert (seen.exit_status, seen.failures, seen.problems) == (0, [], [])
    counts = Counter(c.verdict for c in seen.clauses if c.chapter in (GENERAL, kind))
    assert counts["PASS"] > 5 and set(counts) <= {"PASS", "PARTLY_OBSERVED", "NOT_CLAIMED"}


def test_nothing_is_written_over(package: Path) -> None:
    before = {p: p.read_bytes() for p in package.rglob("*") if p.is_file()}
    done = kvconform("new-adapter", "my-engine", "--into", package.parent)
    assert done.returncode == 2 and "exists already; remove it" in done.stderr
    assert before == {p: p.read_bytes() for p in package.rglob("*") if p.is_file()}


@pytest.mark.parametrize("name", ["", "Engine", "a/b", "../x", "9lives", "a" * 50, "a b", "a_b"])
def test_a_name_that_is_no_module_is_refused(name: str, tmp_path: Path) -> None:
    done = kvconform("new-adapter", name, "--into", tmp_path)
    assert done.returncode == 2 and "cannot name an adapter" in done.stderr and list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    done = kvconform("new-adapter", "my-engine", "--into", file)
    assert done.returncode == 2 and "cannot be made" in done.stderr and file.read_text() == "mine"
