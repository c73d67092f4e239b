"""The version of the suite: what it draws and how it judges."""

from __future__ import annotations

__version__ = "0.1.0"
"""The version of the package."""

SUITE_VERSION = "0.1"


def require(spec: str) -> None:
    """Refuse to go on where the spec is not of this version: `1` takes each 1.x, `1.2` takes 1.2 alone. Raises
    BadInput."""
    from kvspec import SPEC_VERSION
    from kvspec.errors import BadInput

    asked = spec.split(".")
    if SPEC_VERSION.split(".")[: len(asked)] != asked:
        raise BadInput(f"spec {spec} is required, and this kvconform has {SPEC_VERSION}; install one that has it")
