"""Methods that an adapter may leave out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvspec.errors import Unsupported


def offered(thing: Any, method: str) -> Callable[..., Any]:
    """Get a method that not every adapter has. Raises Unsupported if it is missing."""
    found = getattr(thing, method, None)
    if found is None:
        raise Unsupported(f"this adapter has no {method}")
    return found  # type: ignore[no-any-return]
