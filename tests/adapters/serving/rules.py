"""Rules of a scheduler's bookkeeping, each broken by a patch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Patch = pytest.MonkeyPatch
Rule = Callable[[Patch], None]


def around(patch: Patch, owner: Any, name: str, planted: Callable[..., Any]) -> None:
    """Put a function in the place of one that it gets first."""
    right = getattr(owner, name)
    patch.setattr(owner, name, lambda *args, **more: planted(right, *args, **more))
