"""All chapters at once, as far as the adapter declares them: most real bugs lie between two features."""

from __future__ import annotations

import pytest

from kvconform.generate.strategies import whole_system
from kvconform.runner.under_test import Bench
from kvconform.suite import checks


@pytest.mark.kv_needs
def test_explore(bench: Bench) -> None:
    checks.explore_drawn(bench, "system", whole_system.explored(sorted(bench.adapter.chapters)))
    bench.verdict()
