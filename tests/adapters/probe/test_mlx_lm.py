"""mlx-lm, asked through its own caches. Where it is not installed, these tests are skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvadapters.probe import Precision, Probe
from kvadapters.probe.engines import loaded
from kvadapters.probe.model import asked

pytest.importorskip("mlx_lm", reason="mlx-lm is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("name", ["llama", "qwen3", "phi3", "deepseek", "mistral"])
def test_full_layers_are_right(tmp_path: Path, name: str, dtype: str) -> None:
    probe = Probe.of(name, "full,full")
    probe.write(tmp_path)
    verdict = asked(probe, loaded("mlx-lm", str(tmp_path), dtype), Precision(dtype))
    assert verdict.failures == () and verdict.refused == 0, verdict.told()


def test_a_window_that_it_pays_no_attention_to_is_seen(tmp_path: Path) -> None:
    """mlx-lm 0.32.2 runs Mistral as Llama, without windows."""
    probe = Probe.of("mistral", "2*window 8")
    probe.write(tmp_path)
    told = asked(probe, loaded("mlx-lm", str(tmp_path), "f32"), most=30).told()
    assert "after append 9:" in told and "sees 1 row too many: row 0" in told
