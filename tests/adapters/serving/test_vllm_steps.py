"""The log that vLLM's scheduler writes: it is clean, over all group shapes, with drafts and asynchronous steps; and
each rule that a patch breaks is found in it.

Run by `nox -s engines-vllm`; elsewhere vLLM is not there, and these tests are skipped."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest

from kvadapters.probe import Precision, Probe
from kvadapters.serving.engines import opened
from kvconform.serving.run import Run
from kvconform.steps.verdict import judged

if find_spec("vllm") is None:
    pytest.skip("vllm is not installed", allow_module_level=True)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what vLLM imports
    from adapters.serving.patched_vllm import RULES
    from adapters.serving.rules import Rule, counted, demand_found
    from adapters.serving.simulated_vllm import NOT_KEPT, SHAPES, Life
    from kvadapters.serving.step_log import VARIABLE, log_path
    from kvadapters.serving.vllm_steps import group

pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.parametrize("behind", [0, 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_scheduler_as_it_is_has_a_clean_log(shape: str, behind: int, tmp_path: Path) -> None:
    seen = counted(Life, tmp_path / "steps.jsonl", shape, 6, 300, behind=behind)
    must = ["steps", "evictions", "adapter", "salt", "left", "idle"]
    must += [] if shape == "full,window 1" else ["hits"]  # it finds nothing for a window of one row
    must += [] if "state" in shape else ["accepted", "rejected"]
    must += [] if behind else ["preemptions", "resets"]
    assert all(seen[name] for name in must), seen


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape not in NOT_KEPT])
def test_pages_on_the_host_are_what_they_were(shape: str, tmp_path: Path) -> None:
    seen = counted(Life, tmp_path / "steps.jsonl", shape, 6, 200, offloads=True)
    must = ["offloads", "left"] if shape == "full,window 1" else ["offloads", "loads", "hits", "left"]
    assert all(seen[name] for name in must), seen


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_broken_rule_is_found(rule: Rule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shape, clauses, fixed = RULES[rule]
    rule(monkeypatch)
    demand_found(Life, tmp_path / "steps.jsonl", shape, clauses, **fixed)


def test_the_engine_writes_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "steps.jsonl"
    monkeypatch.setenv(VARIABLE, str(log))
    probe = Probe.of("gemma3", "full,window 8")
    probe.write(tmp_path)
    driver = opened(
        "vllm", str(tmp_path), "f32", None, "block=32,blocks=20,chunk=64,sequences=4,longest=256,drafts=3"
    )
    try:
        run = Run(probe, driver, Precision("f32", None))
        run.go(60)
        cached = driver.counts()["cached tokens"]
    finally:
        driver.close()
    verdict = judged(log)
    assert run.failures == [] and verdict.broken is None
    assert verdict.counts["reused"] == cached > 0 < verdict.counts["evictions"]


def test_a_group_that_cannot_be_told_is_refused() -> None:
    class OtherSpec:
        block_size = 4

    with pytest.raises(ValueError, match="cannot tell a group with OtherSpec"):
        group(OtherSpec())


def test_each_of_several_engines_has_its_own_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "logs/steps.jsonl")
    assert log_path(2, 1) == Path("logs/steps-1.jsonl")
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(ValueError, match="set KVSTEPS"):
        log_path(1, 0)
