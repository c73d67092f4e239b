"""Adapters of released engines, where these are installed: what they deviate in is known, and nothing else."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from kvadapters.find import ENGINES, load
from kvconform.cli import main
from kvreports import json_file
from kvspec.errors import CannotRun
from kvspec.records.run import Record
from support.running.judging import record_of

ROOT = Path(__file__).parents[2]
PACKAGES = {"mlx": "mlx_lm", "mlxvlm": "mlx_vlm", "llama": "llama_cpp"} | {
    name: name
    for name in (
        *("transformers", "onnx", "onnxruntime", "openvino", "litgpt", "executorch", "torchtune", "flax", "vllm"),
        *("whisper", "tvm", "easydel", "sglang", "lmcache", "torch"),
    )
}
"""The package of an engine, by the first word of its adapters and scripts."""


def engine_of(name: str) -> str:
    return name.replace("_", "-").partition("-")[0]


def needs(name: str) -> None:
    package = PACKAGES[engine_of(name)]
    if find_spec(package) is None:
        pytest.skip(f"{package} is an extra: nox -s engines, or engines-{engine_of(name)}, installs it")


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_deviates_in_nothing_but_what_is_filed(name: str, tmp_path: Path) -> None:
    needs(name)
    limits = ("--deadline", "60", "--memory", "8192", "--processes", "1")
    known = ROOT / "reports" / "deviations" / "kvconform.toml"
    main(["run", name, "--quick", "--known", str(known), "--report", str(tmp_path), *limits])
    seen = json_file.load(tmp_path / "record.json", Record)
    assert [f.words for f in seen.failures if not f.expected] == []
    assert [p for p in seen.problems if "nothing exercised what they are about" not in p] == []


def test_rows_that_mlx_trimmed_come_back() -> None:
    needs("mlx")
    seen = record_of("mlx-concatenate", ("growing", "mask"), traces=2)
    (first, *_) = [f for f in seen.failures if "GROW-1" in f.clauses]
    assert "rewind 0" in first.words and "expected b" in first.message


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_that_is_not_installed_is_named_with_its_extra(name: str) -> None:
    if find_spec(PACKAGES[engine_of(name)]) is not None:
        pytest.skip("it is installed")
    with pytest.raises(CannotRun, match=r"pip install .kvconform\[|nox -s engines-"):
        load(name)
