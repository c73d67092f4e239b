"""Fetches axe-core, which looks for barriers in pages: `python -m tools.fetch_axe axe-core@VERSION axe.min.js`.

Its one file is not kept in this repository: MPL-2.0, half a megabyte. Where npm is not installed or does not reach
its registry, this says so, writes nothing, and ends with status 0.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory


def fetch(package: str, to: Path) -> str:
    """Write `axe.min.js` of a package to a file. Give why it is left out, or nothing."""
    if shutil.which("npm") is None:
        return "npm is not installed: axe-core is left out"
    with TemporaryDirectory() as folder:
        pack = ["npm", "pack", package, "--pack-destination", folder]
        subprocess.run(pack, check=False, capture_output=True)
        packed = next(Path(folder).glob("axe-core-*.tgz"), None)
        if packed is None:
            return "npm does not reach its registry: axe-core is left out"
        with tarfile.open(packed) as files:
            found = files.extractfile("package/axe.min.js")
            to.write_bytes(found.read() if found else b"")
    return ""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fetch_axe", description=__doc__)
    parser.add_argument("package", metavar="axe-core@VERSION")
    parser.add_argument("to", type=Path, metavar="FILE")
    asked = parser.parse_args(argv)
    if why := fetch(asked.package, asked.to):
        print(why)
    return 0


if __name__ == "__main__":
    sys.exit(main())
