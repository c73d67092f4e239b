"""The check of all chapters at once, as far as the adapter claims them: most real bugs lie between two features."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from kvconform.checks.check import SYSTEM, Check
from kvconform.generate.strategies import whole_system
from kvconform.runner.under_test import AdapterUnderTest


def checks() -> Iterator[Check]:
    """One exploration of everything that the adapter claims."""
    yield Check("system/explore", SYSTEM, frozenset(), judge)


def judge(under_test: AdapterUnderTest) -> None:
    """Judge traces on many caches of one system."""
    under_test.explore(partial(whole_system.explored, sorted(under_test.adapter.chapters)), "system")
