"""The loader is told of Intel's runtime where pip has put it, and nothing else changes."""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from kvgpu.runtimes import build_folder, opencl_vendors


class File:
    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.name

    def locate(self) -> Path:
        return self.path


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Intel's package, in a folder above that of the others as pip puts it; a driver of the system."""
    (tmp_path / "lib" / "python").mkdir(parents=True)
    (tmp_path / "system").mkdir()
    (tmp_path / "lib" / "libintelocl.so").touch()
    (tmp_path / "system" / "other.icd").write_text("libother.so\n")
    there = tmp_path / "lib" / "python" / ".." / "libintelocl.so"
    monkeypatch.setattr(metadata, "files", lambda name: [File(tmp_path / "intel-cpu.icd"), File(there)])
    monkeypatch.setattr(opencl_vendors, "SYSTEM", tmp_path / "system")
    monkeypatch.setattr(build_folder, "folder", lambda name: tmp_path)
    monkeypatch.setenv(opencl_vendors.VENDORS, "")  # so that what is set here goes again
    monkeypatch.delenv(opencl_vendors.VENDORS)
    return tmp_path


def test_the_loader_finds_the_library_beside_the_drivers_of_the_system(package: Path) -> None:
    opencl_vendors.announce()
    assert os.environ[opencl_vendors.VENDORS] == str(package)
    texts = {file.name: file.read_text() for file in package.glob("*.icd")}
    assert texts == {"other.icd": "libother.so\n", "intel-from-pip.icd": f"{package / 'lib' / 'libintelocl.so'}\n"}


def test_a_folder_of_the_users_stays(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(opencl_vendors.VENDORS, "/mine")
    opencl_vendors.announce()
    assert os.environ[opencl_vendors.VENDORS] == "/mine" and not list(package.glob("*.icd"))


@pytest.mark.parametrize("how", ["not installed", "without files", "deleted"])
def test_without_the_library_nothing_changes(how: str, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        if how == "without files":
            return None
        if how == "deleted":
            return [File(package / "gone" / "libintelocl.so")]
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", missing)
    opencl_vendors.announce()
    assert opencl_vendors.VENDORS not in os.environ
