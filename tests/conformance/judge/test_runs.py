"""Runs: what follows from how a cache was is judged only where the harness has seen how it was."""

from __future__ import annotations

import pytest

from kvadapters.reference import Reference
from kvspec.notation import from_sentence
from support.local_adapter import LocalAdapter

UNSEEN = {
    "the run ends with a round of another cache": "run 1 {open C; attend 2; speculate r C}; append 1",
    "the run ends with an opening that is refused": "run 1 {open C; C: append 6; open C step=0}; C: append 1",
    "the run opens a cache afresh": "open C; C: attend 2; run 1 {open C kv_heads=4; C: append 1}; C: attend 2",
}
"""Traces in which something was appended that nobody observed, and the next append has to copy it."""


@pytest.mark.parametrize("ops", UNSEEN.values(), ids=UNSEEN)
def test_what_nobody_observed_costs_no_adapter_its_verdict(ops: str) -> None:
    seen = LocalAdapter(Reference()).run(from_sentence(f"growing kv_heads=1 step=2: {ops}"))
    assert not seen.failed, [d.message for d in seen.differences]
