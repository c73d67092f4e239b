"""What PyPI and citations need of an address: `python -m tools.for_pypi --base ADDRESS [--out DIR]`.

PyPI does not know the repository: a relative link leads nowhere there. ADDRESS is that of the repository's files,
such as `https://HOST/OWNER/kvconform/blob/main`. It prints the README with absolute links. With `--out` it writes a
copy of the checkout to be built: this README, the project's addresses in its metadata, the address of clauses in
CITATION.cff.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from tools.markdown_links import LINK, ROOT


def absolute(text: str, base: str) -> str:
    """The page with each relative link led to the address. Raises ValueError for a link to no file.

    A picture is led to the file itself (`/raw/`): a page that shows a file (`/blob/`) is no picture."""
    pictures = re.compile(r"(?<=!)\[[^\]]*" + LINK.pattern)
    text = pictures.sub(
        lambda m: m[0].replace(f"({m[1]})", f"({_led(m[1], base.replace('/blob/', '/raw/'))})"), text
    )
    return LINK.sub(lambda m: "](" + _led("".join(m[1].split()), base) + ")", text)


def _led(link: str, base: str) -> str:
    if urlsplit(link).scheme or link.startswith("#"):
        return link
    if not (ROOT / link.partition("#")[0]).exists():
        raise ValueError(f"README.md links to {link}, which is no file")
    return urljoin(base.rstrip("/") + "/", link)


def urls(base: str) -> str:
    """The table of the project's addresses in its metadata."""
    named = {
        "Homepage": "README.md",
        "Documentation": "docs",
        "Changelog": "CHANGELOG.md",
        "Spec": "spec/README.md",
    }
    return "[project.urls]\n" + "".join(f'{name} = "{_led(file, base)}"\n' for name, file in named.items())


def write(base: str, out: Path) -> None:
    """Write the copy. Raises FileExistsError: the folder must be new."""
    out.mkdir(parents=True)
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in (n for n in tracked.splitlines() if (ROOT / n).is_file()):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, out / name)
    changes: dict[str, Callable[[str], str]] = {
        "README.md": lambda text: absolute(text, base),
        "pyproject.toml": lambda text: text.replace("[project.scripts]", f"{urls(base)}\n[project.scripts]"),
        "CITATION.cff": lambda text: f'{text}url: "{_led("spec/kvspec/chapters", base)}"\n',
    }
    for name, change in changes.items():
        (out / name).write_text(change((ROOT / name).read_text(encoding="utf-8")), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Print the page, or write the copy."""
    parser = argparse.ArgumentParser(prog="tools.for_pypi", description="What PyPI needs of an address.")
    parser.add_argument("--base", required=True, help="the address of the repository's files")
    parser.add_argument("--out", type=Path, metavar="DIR", help="a new folder for the copy")
    asked = parser.parse_args(arguments)
    if urlsplit(asked.base).scheme not in ("http", "https"):
        parser.error(f"--base must be an address that begins with https://, is {asked.base}")
    if asked.out is None:
        sys.stdout.write(absolute((ROOT / "README.md").read_text(encoding="utf-8"), asked.base))
    elif asked.out.exists():
        parser.error(f"--out: {asked.out} is there already; name a new folder")
    else:
        write(asked.base, asked.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
