"""All profiles at once, as far as the adapter declares them: most real bugs lie between two features."""

from __future__ import annotations

import pytest

from kvconform.bench import Bench
from kvconform.strategies import system
from kvconform.suite import common


@pytest.mark.kv_needs
def test_explore(bench: Bench) -> None:
    common.explore_drawn(bench, "system", system.explored(sorted(bench.adapter.profiles)))
    bench.verdict()
