"""Faults that are planted in mlx-lm while it runs: each is found, made short, drawn, and blamed on the clause that
it breaks; mlx-lm as it is is not accused.

Run by `nox -s engines-mlx-lm`; elsewhere mlx-lm is not there, and these tests are skipped."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kvadapters.probe import Precision, Probe
from kvadapters.serving.engines import opened
from kvconform.serving.run import Run
from kvspec.errors import BadInput

pytestmark = [
    pytest.mark.skipif(find_spec("mlx_lm") is None, reason="mlx-lm is not installed"),
    pytest.mark.filterwarnings("default"),
]

Planted = Callable[[pytest.MonkeyPatch], None]


def trims_one_too_few(patch: pytest.MonkeyPatch) -> None:
    """A cache that is trimmed keeps one row more than is asked for."""
    cache = import_module("mlx_lm.models.cache").KVCache
    right = cache.trim
    patch.setattr(cache, "trim", lambda self, n: right(self, max(0, n - 1)))


def padding_is_seen(patch: pytest.MonkeyPatch) -> None:
    """Requests that are computed together see the padding of the shorter ones."""
    caches = import_module("mlx_lm.models.cache")

    def planted(self: Any, n: int, return_array: bool = False, **more: Any) -> Any:
        return caches.create_causal_mask(n, offset=self._idx, **more)

    patch.setattr(caches.BatchKVCache, "make_mask", planted)


def a_cache_is_handed_out_itself(patch: pytest.MonkeyPatch) -> None:
    """The cache of an earlier request is handed out, and not a copy of it."""
    caches = import_module("mlx_lm.models.cache")
    patch.setattr(caches, "copy", SimpleNamespace(deepcopy=lambda cache: cache))


FAULTS: dict[Planted, set[str]] = {
    trims_one_too_few: {"SERVE-2", "SERVE-4", "SERVE-5"},
    padding_is_seen: {"SERVE-12", "SERVE-11", "SERVE-13"},
    a_cache_is_handed_out_itself: {"SERVE-2", "SERVE-4", "SERVE-5", "SERVE-7", "SERVE-17"},
}
"""A fault, and the clauses it may be blamed on."""


def started(folder: Path, words: str = "chunk=12,sequences=4", rows: str | None = None) -> Run:
    probe = Probe.of("qwen3", "full,full")
    probe.write(folder)
    return Run(probe, opened("mlx_lm", str(folder), "f32", rows, words), Precision("f32", rows))


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found_drawn_and_named(
    plant: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = started(tmp_path)
    plant(monkeypatch)
    run.go(200, 1)
    assert run.failures, run.asked
    failure = run.failures[0]
    print(failure.clause, run.asked, *failure.drawing, *failure.found, sep="\n")
    assert failure.clause in FAULTS[plant], failure
    assert failure.alone and failure.history.count("ask") + failure.history.count("submit") <= 6
    assert any(line.startswith("  ^ ") for line in failure.drawing)


@pytest.mark.parametrize("rows", [None, "q8"])
def test_mlx_lm_as_it_is_is_not_accused(rows: str | None, tmp_path: Path) -> None:
    run = started(tmp_path, "chunk=12" if rows else "chunk=12,sequences=4", rows)
    run.go(60)
    assert run.failures == [] and run.wrong_histories == 0
    assert run.player.counts["cached tokens told"] > 100 and run.judge.queries > 60
    assert ("concurrent" in run.driver.declared.can) == (rows is None)


def test_what_it_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="q8_0"):
        started(tmp_path, "", "q8_0")
    with pytest.raises(BadInput, match="blocks"):
        started(tmp_path, "blocks=20")
