"""The generate and the continuous batching of transformers, judged whole: planted faults are found.

Run by `nox -s engines-transformers-generate`; elsewhere torch is not there, and these tests are skipped."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from adapters.probe import engines
from kvadapters.probe import Probe
from kvadapters.serving.driver import Wanted
from kvconform.serving.run import Run
from kvspec.errors import BadInput
from support.running import whole_engines

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")
pytestmark = pytest.mark.filterwarnings("default")

SMALL = {"block": 4, "blocks": 24, "chunk": 12, "sequences": 4}


@pytest.fixture(scope="module")
def probe() -> Probe:
    return engines.small("qwen3", "full,full")


@pytest.fixture(scope="module")
def folder(probe: Probe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("probe")
    probe.write(into)
    return into


def judged(name: str, probe: Probe, folder: Path, requests: int, **sizes: Any) -> Run:
    driver = import_module(f"kvadapters.serving.drivers.{name}").driver(Wanted(str(folder), **sizes))
    return whole_engines.judged(driver, probe, requests)


def test_generate_goes_on_from_earlier_caches(probe: Probe, folder: Path) -> None:
    run = judged("transformers", probe, folder, 60, sequences=4)
    assert not run.wrong_histories and run.player.counts["cached tokens told"] > 100


def test_a_crop_that_leaves_a_row_too_many_is_found(
    probe: Probe, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers.cache_utils import DynamicLayer

    crop = DynamicLayer.crop
    monkeypatch.setattr(DynamicLayer, "crop", lambda layer, rows: crop(layer, min(0, rows + 1)))
    run = judged("transformers", probe, folder, 200)
    assert run.failures[0].clause in ("SERVE-2", "SERVE-4", "SERVE-5"), run.failures


def test_assisted_generation_computes_a_prompt_again_behind_a_cache(probe: Probe, folder: Path) -> None:
    """`reports/deviations/transformers/serving/assisted_cache.py` shows it without this suite."""
    run = judged("transformers", probe, folder, 60, drafts=3)
    assert run.failures[0].sort in ("extra", "failed") and "reused" in "".join(run.failures[0].drawing)


def test_continuous_batching_is_right_in_a_small_pool(probe: Probe, folder: Path) -> None:
    run = judged("transformers_batching", probe, folder, 120, **SMALL)
    assert not run.wrong_histories
    assert all(run.driver.counts()[name] for name in ("cached tokens", "evictions", "preemptions"))


def no_parent(patch: pytest.MonkeyPatch) -> None:
    """The key of a block is made of its own tokens alone."""
    from transformers.generation.continuous_batching.cache_allocators import cache_allocator

    key: Callable[..., int] = cache_allocator.compute_block_hash
    patch.setattr(cache_allocator, "compute_block_hash", lambda parent, tokens: key(None, tokens))


def found_for_ever(patch: pytest.MonkeyPatch) -> None:
    """Blocks that are taken for other rows are still found under their old keys."""
    from transformers.generation.continuous_batching.cache_allocators.cache_allocator import BlockLedger

    def evict(ledger: Any) -> list[int]:
        evicted = list(ledger.cached_blocks)
        ledger.cached_blocks.clear()
        for block in evicted:
            del ledger.block_to_hash[block]
        return evicted

    patch.setattr(BlockLedger, "evict_cached_blocks", evict)


FAULTS = {no_parent: ("SERVE-3", "SERVE-1"), found_for_ever: ("SERVE-9", "SERVE-10")}
"""Clauses that each may be blamed on. Alike blocks of one request are merged too: SERVE-1."""


@pytest.mark.parametrize(("plant", "clauses"), FAULTS.items())
def test_a_fault_that_is_planted_in_continuous_batching_is_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    clauses: tuple[str, ...],
    probe: Probe,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    run = judged("transformers_batching", probe, folder, 300, **SMALL)
    assert run.failures and run.failures[0].clause in clauses, run.failures


def test_a_size_that_an_engine_does_not_take_is_refused(folder: Path) -> None:
    from kvadapters.serving.drivers import transformers, transformers_batching

    with pytest.raises(BadInput, match="started with block"):
        transformers.driver(Wanted(str(folder), block=4))
    with pytest.raises(BadInput, match="started with rows"):
        transformers_batching.driver(Wanted(str(folder), rows="q8_0"))
