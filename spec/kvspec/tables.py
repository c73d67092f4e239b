"""Tables of data, kept as TOML beside the code that reads them."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def table(package: str, name: str) -> dict[str, Any]:
    """Read the table `name`.toml of a package. All that ask for it get the same dict, which nobody changes."""
    return tomllib.loads(files(package).joinpath(f"{name}.toml").read_text(encoding="utf-8"))
