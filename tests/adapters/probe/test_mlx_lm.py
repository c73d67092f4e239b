"""mlx-lm, asked through its own caches. Where it is not installed, these tests are skipped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kvadapters.probe import Precision, Probe
from kvadapters.probe.architectures import ARCHITECTURES
from kvadapters.probe.asked import asked
from kvadapters.probe.engines import loaded
from kvadapters.probe.formats import mlx

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("name", ["llama", "qwen3", "phi3", "deepseek", "mistral"])
def test_full_layers_are_right(tmp_path: Path, name: str, dtype: str) -> None:
    probe = Probe.of(name, "full,full")
    probe.write(tmp_path)
    verdict = asked(probe, loaded("mlx-lm", str(tmp_path), dtype), Precision(dtype))
    assert verdict.failures == () and verdict.refused == 0, verdict.told()


FORMS = {
    "llama": "full,full",
    "mistral": "full,full",
    "qwen3": "full,full",
    "phi3": "full,full",
    "gemma3": "window 8,window 8,full",
    "gpt-oss": "full,window 8",
    "deepseek": "full,full",
    "llama4": "3*chunk 8,full",
    "qwen3-next": "3*linear,full",
}
"""Layers of each architecture that mlx-lm's own format has."""


def test_every_architecture_of_its_format_is_tried() -> None:
    assert set(FORMS) == set(mlx.DIALECTS) == set(ARCHITECTURES)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("name", FORMS)
def test_its_own_format_is_right(tmp_path: Path, name: str, dtype: str) -> None:
    """Of windows that have come round, and of states, a rewind is refused."""
    if name == "gpt-oss" and dtype != "f32":
        pytest.skip("mlx multiplies experts in f32 alone on a CPU")
    probe = Probe.of(name, FORMS[name])
    probe.write(tmp_path, dtype, "mlx")
    verdict = asked(probe, loaded("mlx-lm", str(tmp_path), dtype), Precision(dtype), most=22)
    assert verdict.failures == () and verdict.queries > 100, verdict.told()
    assert bool(verdict.refused) == any(kind in FORMS[name] for kind in ("window", "linear")), verdict.refused


def test_a_state_that_is_not_copied_is_named(tmp_path: Path) -> None:
    """A copy that shares the states of the linear layers with its original."""
    probe = Probe.of("qwen3-next", "linear,full")
    probe.write(tmp_path, "f32", "mlx")
    right = loaded("mlx-lm", str(tmp_path), "f32")

    def copied(cache: Any) -> Any:
        assert right.copy is not None
        return [cache[0], *right.copy(cache[1:])]

    told = asked(probe, replace(right, copy=copied), most=12).told()
    assert "layer 0 (linear), query" in told and "which this text does not have" in told, told


def test_a_window_that_it_pays_no_attention_to_is_seen(tmp_path: Path) -> None:
    """mlx-lm 0.32.2 runs Mistral as Llama, without windows."""
    probe = Probe.of("mistral", "2*window 8")
    probe.write(tmp_path)
    told = asked(probe, loaded("mlx-lm", str(tmp_path), "f32"), most=30).told()
    assert "after append 9:" in told and "sees 1 row too many: row 0" in told
