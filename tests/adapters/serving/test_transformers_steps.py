"""The log that the continuous batching of transformers writes: it is clean, with forks, pages on the host and steps
that are decided one ahead; each rule that a patch breaks is found in it; and it ends where it is known to.

Run by `nox -s steps-transformers`; elsewhere transformers is not there, and these tests are skipped."""

from __future__ import annotations

import warnings
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from kvconform.steps.verdict import judged

if find_spec("transformers") is None:
    pytest.skip("transformers is not installed", allow_module_level=True)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what transformers imports
    from transformers import ContinuousBatchingConfig, GenerationConfig, LlamaConfig, LlamaForCausalLM
    from transformers.generation.continuous_batching.continuous_api import ContinuousBatchProcessor

    from adapters.serving.patched_transformers import RULES
    from adapters.serving.rules import Rule, demand_found
    from adapters.serving.simulated_transformers import SHAPES, Life
    from kvadapters.serving import transformers_steps
    from kvadapters.serving.step_log import VARIABLE

pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.parametrize("behind", [0, 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_processor_as_it_is_has_a_clean_log(shape: str, behind: int, tmp_path: Path) -> None:
    seen = Counter[str]()
    for seed in range(10):
        life = Life(seed, tmp_path / "steps.jsonl", shape, behind=behind, host=seed % 2 * 50)
        life.live(150)
        verdict = judged(tmp_path / "steps.jsonl")
        assert verdict.broken is None, (seed, verdict.broken)
        seen += verdict.counts
    must = ["steps", "evictions", "forks", "copies"]
    must += ["hits", "swaps", "left", "idle", "preemptions", "offloads", "loads"] if shape == "full" else []
    assert all(seen[name] for name in must), seen


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_broken_rule_is_found(rule: Rule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shape, clauses, fixed = RULES[rule]
    rule(monkeypatch)
    demand_found(Life, tmp_path / "steps.jsonl", shape, clauses, **fixed)


def test_a_request_that_is_cancelled_in_flight_ends_the_processor(tmp_path: Path) -> None:
    lives = (Life(n, tmp_path / "steps.jsonl", "full", behind=1, cancelled=True, host=0) for n in range(20))
    with pytest.raises(KeyError):
        [life.live(100) for life in lives]


def test_an_engine_writes_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ContinuousBatchProcessor, "__init__", ContinuousBatchProcessor.__init__)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "steps.jsonl"))
    transformers_steps.register()
    transformers_steps.register()
    tiny = LlamaConfig(num_hidden_layers=1, num_attention_heads=1, hidden_size=8, vocab_size=60)
    how = GenerationConfig(max_new_tokens=9, eos_token_id=-1, pad_token_id=0)
    sizes = ContinuousBatchingConfig(page_size=4, num_blocks=8, max_batch_tokens=64, max_requests_per_batch=2)
    prompts = [[1, 2, 3, 4, 5, n] for n in range(4)]
    LlamaForCausalLM(tiny).eval().generate_batch(prompts, how, sizes, progress_bar=False)
    verdict = judged(tmp_path / "steps.jsonl")
    assert verdict.broken is None and verdict.counts["sampled"] == 36
    assert verdict.counts["requests"] == 4 and verdict.counts["hits"] > 0


def test_an_engine_that_cannot_be_told_is_refused() -> None:
    processor = SimpleNamespace(cache=SimpleNamespace(cache_allocators={"sliding_attention": None}))
    processor.offloading_manager = None
    with pytest.raises(ValueError, match="tells full layers, and there are none; unset KVSTEPS"):
        transformers_steps.TransformersSteps(processor)
