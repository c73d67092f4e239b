"""What is repeated many times: a share of it in every run of the tests, all of it in `nox -s slow`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(n: int, values: Iterable[Any]) -> list[Any]:
    """Parameters of which every run takes the first of each `n`. A tuple is several arguments."""
    return [_parameter(value, slow=i % n > 0) for i, value in enumerate(values)]


def counts(few: int, many: int) -> list[Any]:
    """How often something is repeated: a few times in every run."""
    return [_parameter(few), _parameter(many, slow=True)]


def _parameter(value: Any, slow: bool = False) -> Any:
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=[pytest.mark.slow] if slow else [])
