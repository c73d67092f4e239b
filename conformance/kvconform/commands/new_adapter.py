"""`kvconform new-adapter NAME`: writes an adapter package that installs, and that passes before you change it."""

from __future__ import annotations

import re
from argparse import Namespace
from importlib import resources
from pathlib import Path

from kvadapters import find
from kvconform.message import tell
from kvconform.runner.record import output
from kvspec.errors import BadInput

FILES = {
    "pyproject.toml": "pyproject.toml.txt",
    "README.md": "README.md.txt",
    "@module@/__init__.py": "adapter.py.txt",
    "@module@/engine.py": "engine.py.txt",
    "tests/test_conformance.py": "tests/test_conformance.py.txt",
}


def main(options: Namespace) -> int:
    """Write the package. Raises BadInput if its folder or name exists already."""
    name = options.name
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,40}", name):
        raise BadInput(f"{name!r} cannot name an adapter: use small letters, digits and hyphens, a letter first")
    for taken in {name, f"{name}-growing", f"{name}-ring"} & set(find.names()):
        raise BadInput(f"an adapter {taken!r} exists already, at {find.names()[taken]}; choose another name")
    folder = Path(options.into) / f"kvadapter-{name}"
    if folder.exists():
        raise BadInput(f"{folder} exists already; remove it, or write elsewhere with --into")
    for target, template in FILES.items():
        output.leave(folder / filled(target, name), filled(_template(template), name))
    tell(f"wrote {folder}; next: pip install -e {folder} && kvconform smoke {name}-ring")
    return 0


def filled(text: str, name: str) -> str:
    """Fill the adapter's name and module into a template."""
    return text.replace("@module@", "kvadapter_" + name.replace("-", "_")).replace("@name@", name)


def _template(name: str) -> str:
    return (
        resources.files("kvconform").joinpath("templates", "adapter", *name.split("/")).read_text(encoding="utf-8")
    )
