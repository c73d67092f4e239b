"""Capability honesty: what an adapter does not declare, it refuses."""

from __future__ import annotations

import pytest

from kvconform.judge import honesty
from kvconform.runner.under_test import Bench


@pytest.mark.kv_needs
def test_undeclared(bench: Bench) -> None:
    bench.tally.problems += [f"adapter: {said}" for said in honesty.undeclared(bench.adapter, bench.worker)]
    bench.verdict()
