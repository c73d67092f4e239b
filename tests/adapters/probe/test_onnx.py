"""Probes of ONNX in onnxruntime: every architecture is right, and what is planted in the file is named.

Run by `nox -s probe-onnx`; elsewhere onnxruntime is not there, and these tests are skipped."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adapters.probe import engines
from kvadapters.probe import Probe
from kvadapters.probe.asked import asked
from kvadapters.probe.engines import loaded
from kvadapters.probe.views import View
from kvconform import cli

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("onnx", reason="onnx is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

LAYERS = {
    "llama": "full,full",
    "mistral": "2*window 8",
    "qwen3": "4*full,4*window 8",
    "phi3": "2*window 8",
    "gemma3": "full,window 8",
    "gpt-oss": "full,window 8",
}


def test_every_architecture_of_this_format_is_tried() -> None:
    from kvadapters.probe.formats import onnx

    assert set(LAYERS) == set(onnx.NAMES)


@pytest.mark.parametrize("name", LAYERS)
def test_it_is_read_right(tmp_path: Path, name: str) -> None:
    probe = Probe.of(name, LAYERS[name])
    record = probe.write(tmp_path, "f32", "onnx")
    assert record == probe.write(tmp_path, "f32", "onnx"), "the same each time"
    model, tokens = loaded("onnxruntime", str(tmp_path), "f32"), engines.text(probe, 40)
    answers = model.decode(model.open(), tokens)
    assert np.abs(answers - engines.logits(probe, tokens)).max() < 1e-4
    verdict = asked(probe, model, most=30)
    assert verdict.failures == () and verdict.queries > 300, verdict.told()


def test_a_window_that_is_wrong_by_one_is_named(tmp_path: Path) -> None:
    """Planted in the file: its window layers have a row more."""
    probe = Probe.of("gemma3", "full,window 8")
    full, window = probe.layout.layers
    wide = replace(probe, layout=replace(probe.layout, layers=(full, View("window", window.size + 1))))
    wide.write(tmp_path, "f32", "onnx")
    told = asked(probe, loaded("onnxruntime", str(tmp_path), "f32"), most=30).told()
    assert "layer 1 (window 8), query 8: sees 1 row too many: row 0" in told and "layer 0" not in told, told


def test_the_configuration_of_genai_says_what_the_graph_has(tmp_path: Path) -> None:
    Probe.of("qwen3", "full,full,full").write(tmp_path, "f32", "onnx")
    decoder = json.loads((tmp_path / "genai_config.json").read_text())["model"]["decoder"]
    assert decoder["num_hidden_layers"] == 3 and decoder["inputs"]["past_key_names"] == "past_key_values.%d.key"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("llama4", "--layers", "full"), "no ONNX of llama4"),
        (("qwen3", "--dtype", "f16"), "is written in f32"),
    ],
)
def test_what_it_cannot_be_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: tuple[str, ...], words: str
) -> None:
    assert cli.main(["probe", *given, "--format", "onnx", "-o", str(tmp_path / "out")]) == 2
    assert words in capsys.readouterr().err and not (tmp_path / "out").exists()
