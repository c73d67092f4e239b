"""Development tools: sanitizers, the browser check, generators of pages and frozen data."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def _demand_checkout() -> None:
    """Tools work on the checkout that they stand in. Packages of another place would be checked in silence."""
    found = find_spec("kvspec")
    if found and found.origin and not Path(found.origin).resolve().is_relative_to(CHECKOUT):
        raise SystemExit(
            f"the tools of {CHECKOUT} work on its own packages, and Python finds those of "
            f"{Path(found.origin).parents[1]}; in the checkout: python3 -m pip install -e '.[dev]'"
        )


_demand_checkout()
