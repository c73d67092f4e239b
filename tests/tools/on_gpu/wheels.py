"""Wheels that are carried to a machine without a network: those whose packages it lacks, or has older, are
unpacked."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

NEEDED = (
    *("numpy", "ml_dtypes", "msgspec", "hypothesis", "sortedcontainers", "tabulate", "jinja2", "markupsafe"),
    *("psutil", "packaging"),
)
"""The modules that all parts import, and those that these import. Pytest is needed for one part."""


def download(names: Iterable[str]) -> str:
    """Give the command that makes the folder for Python 3.12. `--no-deps` keeps it small."""
    return (
        "python3 -m pip download --no-deps --only-binary=:all: --python-version 3.12 "
        f"--platform manylinux2014_x86_64 --platform manylinux_2_28_x86_64 -d wheels {' '.join(names)}"
    )


def unpack(folder: Path | None, into: Path) -> Iterator[str]:
    """Unpack the wheels of a folder whose packages are missing or older, and say what was done with each. Raises
    OSError where there is no such folder, or a file in it is no wheel."""
    if folder is None:
        return
    for wheel in sorted(Path(folder).resolve(strict=True).glob("*.whl")):
        name, carried, *_ = *wheel.name.split("-"), ""
        there = _there(name)
        if there and _numbers(there) >= _numbers(carried):
            yield f"{wheel.name}: not used, {name} {there} is there"
            continue
        try:
            with zipfile.ZipFile(wheel) as file:
                file.extractall(into)
        except zipfile.BadZipFile as e:
            raise OSError(f"{wheel} is no wheel ({e})") from None
        yield f"{wheel.name}: used"


def _numbers(version: str) -> list[int]:
    """Give the numbers of a version. `packaging` may be among the wheels."""
    return [int(number) for number in re.findall(r"\d+", version)]


def _there(name: str) -> str:
    """Give the version of an installed package; empty where it is missing."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
