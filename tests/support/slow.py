"""What is repeated many times: a share of it in every run of the tests, all of it in `nox -s slow`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(n: int, values: Iterable[Any]) -> list[Any]:
    """Parameters of which every run takes the first of each `n`. A tuple is several arguments."""
    return [value if i % n == 0 else _slow(value) for i, value in enumerate(values)]


def counts(few: int, many: int) -> list[Any]:
    """How often something is repeated: a few times in every run."""
    return [few, _slow(many)]


def _slow(value: Any) -> Any:
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow)
