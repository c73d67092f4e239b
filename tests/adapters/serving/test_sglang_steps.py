"""The log that SGLang's scheduler writes: it is clean, over full layers and windows, one step ahead or not; and
each rule that a patch breaks is found in it.

Run by `nox -s steps-sglang`; elsewhere SGLang is not there, and these tests are skipped."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

if find_spec("sglang") is None:
    pytest.skip("sglang is not installed", allow_module_level=True)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what SGLang imports
    from adapters.serving.patched_sglang import RULES
    from adapters.serving.rules import Rule, counted, demand_found
    from adapters.serving.simulated_sglang import SHAPES, Life
    from kvadapters.serving import sglang_steps

pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.parametrize("behind", [0, 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_scheduler_as_it_is_has_a_clean_log(shape: str, behind: int, tmp_path: Path) -> None:
    seen = counted(Life, tmp_path / "steps.jsonl", shape, 10, 200, behind=behind)
    must = ("steps", "hits", "evictions", "preemptions", "adapter", "salt", "left", "idle", "resets", "swaps")
    assert all(seen[name] for name in must), seen


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_broken_rule_is_found(rule: Rule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shape, clauses, fixed = RULES[rule]
    rule(monkeypatch)
    demand_found(Life, tmp_path / "steps.jsonl", shape, clauses, **fixed)


def test_an_engine_that_cannot_be_told_is_refused() -> None:
    scheduler = SimpleNamespace(
        spec_algorithm=SimpleNamespace(is_none=lambda: False),
        is_hybrid_ssm=True,
        enable_hierarchical_cache=False,
        disaggregation_mode=SimpleNamespace(value="null"),
        token_to_kv_pool_allocator=object(),
    )
    with pytest.raises(ValueError, match="cannot tell drafts, states, slots from object of SGLang; unset KVSTEPS"):
        sglang_steps.demand(scheduler)
