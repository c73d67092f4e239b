"""Faults that are planted in vLLM while it runs: each is found, made short, drawn, and blamed on the clause that it
breaks; vLLM as it is is not accused.

Run by `nox -s engines-vllm`; elsewhere vLLM is not there, and these tests are skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from kvadapters.probe import Precision, Probe
from kvadapters.serving.driver import Request
from kvadapters.serving.engines import opened
from kvconform.serving.run import Run
from kvspec.errors import BadInput, Refused

pytestmark = [
    pytest.mark.skipif(find_spec("vllm") is None, reason="vllm is not installed"),
    pytest.mark.filterwarnings("default"),
]

SIZES = "block=32,blocks=20,chunk=64,sequences=4,longest=256"
Planted = Callable[[pytest.MonkeyPatch], None]


def keys_without_parents(patch: pytest.MonkeyPatch) -> None:
    """The key of a block is made of its own tokens alone."""
    keys = import_module("vllm.v1.core.kv_cache_utils")
    right = keys.hash_block_tokens
    patch.setattr(keys, "hash_block_tokens", lambda hashed, parent, *more: right(hashed, None, *more))


def a_window_too_wide(patch: pytest.MonkeyPatch) -> None:
    """Attention shows one row more than its window has."""
    attention = import_module("vllm.v1.attention.backends.cpu_attn").CPUAttentionBackendImpl
    right = attention.__init__

    def planted(self: Any, *args: Any, **more: Any) -> None:
        right(self, *args, **more)
        self.sliding_window += self.sliding_window > 0

    patch.setattr(attention, "__init__", planted)


def rows_let_go_too_soon(patch: pytest.MonkeyPatch) -> None:
    """The cache manager lets go of a block while the next query still sees its last row: others may write there."""
    manager = import_module("vllm.v1.core.single_type_kv_cache_manager").SlidingWindowManager
    right = manager.get_num_skipped_tokens
    patch.setattr(manager, "get_num_skipped_tokens", lambda self, computed: right(self, computed + 1))


def too_few_blocks_of_a_window(patch: pytest.MonkeyPatch) -> None:
    """A prefix is gone on from where one block of those that its window reaches into is there."""
    manager = import_module("vllm.v1.core.single_type_kv_cache_manager").SlidingWindowManager
    patch.setattr(manager, "_contiguous_blocks_for_hit", staticmethod(lambda *_, **__: 1))


def found_after_eviction(patch: pytest.MonkeyPatch) -> None:
    """A block is found under its old key after it was given to others."""

    def planted(self: Any, block: Any) -> list[Any]:
        block.reset_hash()
        return []

    patch.setattr(import_module("vllm.v1.core.block_pool").BlockPool, "_remove_cached_block_hashes", planted)


FAULTS: dict[Planted, tuple[str, tuple[str, ...], str]] = {
    keys_without_parents: ("full,window 8", ("SERVE-3",), "reused 32 tokens"),
    a_window_too_wide: ("full,window 8", ("SERVE-1",), "sees 1 row too many"),
    rows_let_go_too_soon: ("full,window 8", ("SERVE-10", "SERVE-12"), "layer 1 (window 8)"),
    too_few_blocks_of_a_window: ("full,window 40", ("SERVE-6",), "layer 1 (window 40)"),
    found_after_eviction: ("full,window 8", ("SERVE-9",), "sees"),
}
"""A fault: the layers it is shown with, the clauses it may be blamed on, and what is said of it."""


@contextmanager
def started(layers: str, folder: Path, words: str = SIZES, rows: str | None = None) -> Iterator[Run]:
    probe = Probe.of("gemma3", layers)
    probe.write(folder)
    driver = opened("vllm", str(folder), "f32", rows, words)
    try:
        yield Run(probe, driver, Precision("f32", rows))
    finally:
        driver.close()


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found_drawn_and_named(
    plant: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers, clauses, said = FAULTS[plant]
    plant(monkeypatch)
    with started(layers, tmp_path) as run:
        run.go(500, 1)
    assert run.failures and run.asked < 500
    failure = run.failures[0]
    print(failure.clause, run.asked, *failure.drawing, *failure.found, sep="\n")
    assert failure.clause in clauses, failure
    assert failure.alone and failure.history.count("ask") + failure.history.count("submit") <= 6
    assert any(said in line for line in failure.found) and any(
        line.startswith("  ^ ") for line in failure.drawing
    ), failure


def keys_without_adapters(patch: pytest.MonkeyPatch) -> None:
    """The key of a block leaves out the adapter."""
    patch.setattr(import_module("vllm.v1.core.kv_cache_utils"), "_gen_lora_extra_hash_keys", lambda request: [])


def keys_without_vectors(patch: pytest.MonkeyPatch) -> None:
    """The key of a block leaves out the vectors that were handed in."""
    keys = import_module("vllm.v1.core.kv_cache_utils")
    patch.setattr(keys, "_gen_prompt_embeds_extra_hash_keys", lambda *_: [])


@pytest.mark.parametrize("planted", [False, True])
def test_a_key_without_vectors_is_found(planted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if planted:
        keys_without_vectors(monkeypatch)
    probe = Probe.of("gemma3", "full,window 40")
    probe.write(tmp_path)
    driver = opened("kvadapters.serving.drivers.vllm:vectors", str(tmp_path), "f32", None, SIZES)
    try:
        run = Run(probe, driver, Precision("f32"))
        run.go(150, 1)
    finally:
        driver.close()
    assert run.aimed["SERVE-20"] and [f.clause for f in run.failures] == ["SERVE-20"] * planted, run.failures


@pytest.mark.parametrize("planted", [False, True])
def test_a_key_without_the_adapter_is_found(planted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one more place for adapters, or vLLM on a CPU has a fault of its own."""
    if planted:
        keys_without_adapters(monkeypatch)
    probe = Probe.of("qwen3", "full,full", adapters=True)
    probe.write(tmp_path)
    driver = opened("kvadapters.serving.drivers.vllm:spare", str(tmp_path), "f32", None, SIZES)
    try:
        run = Run(probe, driver, Precision())
        run.go(200, 1)
    finally:
        driver.close()
    assert [failure.clause for failure in run.failures] == ["SERVE-19"] * planted
    assert all("adapter" in failure.found[0] for failure in run.failures)


def test_vllm_as_it_is_is_not_accused_and_declares_what_it_has(tmp_path: Path) -> None:
    with started("full,window 8", tmp_path, f"{SIZES},drafts=3") as run:
        run.go(80)
        said, counts = run.driver.declared, run.driver.counts()
        assert run.failures == [] and run.wrong_histories == 0
        assert (said.block, said.blocks, said.chunk, said.drafts, said.sequences) == (32, 20, 64, 3, 4)
        assert all(counts[name] > 0 for name in ("cached tokens", "evictions", "drafts accepted")), counts
        assert counts["cached tokens"] == run.player.counts["cached tokens told"]
        with pytest.raises(Refused):
            run.driver.submit(Request(tuple(range(200)) * 2))


def test_rows_that_it_does_not_have_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="fp8_e4m3"), started("full,window 8", tmp_path, SIZES, "q8_0"):
        pass
