"""What is written: files that any loader reads, exact in every dtype, the same each time; and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from adapters.probe import engines
from adapters.probe.engines import CASES
from kvadapters.probe import Probe
from kvadapters.probe.architectures import ARCHITECTURES
from kvadapters.probe.formats import safetensors
from kvadapters.probe.views import View, parsed
from kvconform import cli
from kvspec.errors import BadInput


def loaded(path: Path) -> dict[str, Any]:
    """The tensors of a safetensors file, read by its format's description alone."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    dtypes: dict[str, Any] = {"F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16}
    del header["__metadata__"]
    return {
        name: np.frombuffer(body[slice(*one["data_offsets"])], dtypes[one["dtype"]]).reshape(one["shape"])
        for name, one in header.items()
    }


@pytest.mark.parametrize("name", CASES)
def test_a_checkpoint_is_exact_in_every_dtype(tmp_path: Path, name: str) -> None:
    probe = engines.small(name, CASES[name])
    tensors = probe.architecture.tensors(probe.network)
    for dtype in safetensors.DTYPES:
        record = probe.write(tmp_path / dtype, dtype)
        found = loaded(tmp_path / dtype / "model.safetensors")
        assert found.keys() == tensors.keys()
        assert all(np.array_equal(found[n].astype(np.float64), t.astype(np.float64)) for n, t in tensors.items())
        assert record == probe.write(tmp_path / "again", dtype), "the same each time"
    config = json.loads((tmp_path / "f32" / "config.json").read_text())
    words = json.loads((tmp_path / "f32" / "tokenizer.json").read_text())["model"]["vocab"]
    assert config["vocab_size"] == len(words) == probe.layout.vocabulary
    assert words["t7"] == 7 and words["layer1.seen.3"] == probe.layout.id_of(probe.layout.block(1).seen.start + 3)


def test_every_architecture_is_tried() -> None:
    assert set(CASES) == set(ARCHITECTURES)


@pytest.mark.parametrize("name", CASES)
def test_a_checkpoint_of_eight_layers_is_at_most_a_hundred_megabytes(name: str) -> None:
    kind = next(iter(ARCHITECTURES[name].theta))
    probe = Probe.of(name, f"8*{kind}{' 8' if kind != 'full' else ''}")
    assert probe.layout.ids >= 55
    whole = engines.small(name, CASES[name])
    elements = sum(t.size for t in whole.architecture.tensors(whole.network).values())
    from kvadapters.probe import checkpoint

    assert checkpoint._elements(whole.architecture, whole.layout) == pytest.approx(elements, rel=0.06)


@pytest.mark.parametrize("output", ["weights", "tokens"])
def test_the_folder_says_which_probe_it_is(tmp_path: Path, output: str) -> None:
    probe = Probe.of("qwen3", "window 5,full", output)
    assert engines.small("qwen3", "full").write(tmp_path)["layers"] == "full"
    probe.write(tmp_path, "bf16")
    assert Probe.load(tmp_path) == probe


REFUSED = {
    "an unknown architecture": (("lama",), "there are llama, mistral"),
    "layers that it has not": (("llama", "--layers", "window 8"), "llama has no layers of window 8"),
    "two sizes": (("gemma3", "--layers", "window 8,window 9"), "one size for all layers with a window"),
    "mixed layers": (("mistral", "--layers", "full,window 8"), "one size for all layers"),
    "an unknown output": (("llama", "--output", "all"), "there are weights, tokens"),
    "a window of nothing": (("mistral", "--layers", "window 0"), "a size is from 1"),
    "no view": (("llama", "--layers", "full,,full"), "'' is no view"),
    "too many layers": (("llama", "--layers", "99*full"), "1 to 16 layers"),
    "too large": (("llama", "--layers", "16*full"), "more than 100 MB"),
    "an unknown format": (("llama", "--format", "pickle"), "there are safetensors, gguf, onnx, mlx"),
    "a length of a period that mlx-lm does not have": (
        ("llama4", "--layers", "chunk 8,full", "--format", "mlx"),
        "in a period of 4 whose last layer is full: not chunk 8, full",
    ),
    "a window that mlx-lm does not have": (
        ("qwen3", "--layers", "full,window 8", "--format", "mlx"),
        "mlx-lm has no layers of window 8 in qwen3",
    ),
    "a period that mlx-lm does not have": (
        ("gemma3", "--layers", "full,window 8", "--format", "mlx"),
        "in a period whose last layer is full: not full, window 8",
    ),
    "an unknown dtype": (("llama", "--dtype", "f8"), "there are f32, bf16, f16"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_the_command_says_what_it_cannot_write(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, words = REFUSED[case]
    assert cli.main(["probe", *given, "-o", str(tmp_path / "out")]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_command_writes_a_checkpoint_and_says_what_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["probe", "llama4", "--layers", "chunk 8,full", "-o", str(tmp_path), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record == json.loads((tmp_path / "probe.json").read_text())
    assert record["lost"] == ["layers that are full: they have no RoPE, so that distances are not shown"]


@pytest.mark.parametrize(
    "said", ["", "[]", '{"recipe": 0, "architecture": "llama", "layers": "full", "output": "x"}']
)
def test_a_folder_of_something_else_is_refused(tmp_path: Path, said: str) -> None:
    (tmp_path / "probe.json").write_text(said)
    with pytest.raises(BadInput, match=r"probe\.json"):
        Probe.load(tmp_path)


def test_views_in_words() -> None:
    assert parsed("2*full, window 8") == (View("full"), View("full"), View("window", 8))
    assert View("chunk", 3).sees(5).astype(int).tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [0, 0, 0, 1, 0],
        [0, 0, 0, 1, 1],
    ]
