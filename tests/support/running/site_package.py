"""A package, installed into a folder of its own: by pip, or as metadata beside it where pip cannot build it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tomllib
from pathlib import Path


def installed(package: Path, site: Path) -> Path:
    """Install the package in this folder into `site`; gives that."""
    if importlib.util.find_spec("hatchling") and importlib.util.find_spec("pip"):
        pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index", "-q"]
        done = subprocess.run(
            [*pip, "--target", str(site), str(package)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    else:
        _by_hand(package, site)
    return site


def _by_hand(package: Path, site: Path) -> None:
    document = tomllib.loads((package / "pyproject.toml").read_text())
    name, points = document["project"]["name"], document["project"]["entry-points"]["kvconform.adapters"]
    (module,) = document["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    info = site / f"{name.replace('-', '_')}-0.1.0.dist-info"
    info.mkdir(parents=True)
    info.joinpath("entry_points.txt").write_text(
        "[kvconform.adapters]\n" + "".join(f"{adapter} = {where}\n" for adapter, where in points.items())
    )
    info.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    (site / module).symlink_to(package / module)
