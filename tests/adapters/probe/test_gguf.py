"""GGUF: what is written is what its format says; with LLAMA_CPP set, llama.cpp loads it and is read."""

from __future__ import annotations

import os
import struct
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from adapters.probe import engines, gated_delta
from kvadapters.probe import Precision, Probe, read
from kvadapters.probe.formats import llama_cpp
from kvadapters.probe.layout import HEAD_DIM
from kvspec.errors import BadInput

CASES = {
    "llama": "2*full",
    "mistral": "2*full",
    "qwen3": "2*full",
    "phi3": "2*full",
    "deepseek": "2*full",
    "gemma3": "window 5,full",
    "gpt-oss": "window 5,full",
    "qwen3-next": "linear,full",
}


def loaded(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Keys and values, and tensors, of a GGUF file, read by its format's description alone."""
    data, at = path.read_bytes(), 0

    def take(form: str) -> Any:
        nonlocal at
        found = struct.unpack_from(f"<{form}", data, at)
        at += struct.calcsize(f"<{form}")
        return found[0] if len(found) == 1 else found

    def text() -> str:
        nonlocal at
        size = take("Q")
        at += size
        return data[at - size : at].decode()

    def several() -> list[Any]:
        form = forms[take("I")]
        return [form() for _ in range(take("Q"))]

    magic, version, tensors, keys = take("4sIQQ")
    assert (magic, version) == (b"GGUF", 3)
    forms = {4: lambda: take("I"), 6: lambda: take("f"), 7: lambda: take("?"), 8: text, 9: several}
    values = {text(): forms[take("I")]() for _ in range(keys)}
    infos = [(text(), [take("Q") for _ in range(take("I"))], take("I"), take("Q")) for _ in range(tensors)]
    body = at + -at % values["general.alignment"]
    dtypes: dict[int, Any] = {0: np.float32, 1: np.float16, 30: ml_dtypes.bfloat16}
    return values, {
        name: np.frombuffer(data, dtypes[kind], int(np.prod(shape)), body + offset).reshape(shape[::-1])
        for name, shape, kind, offset in infos
    }


def values_of(tensors: dict[str, Any]) -> Any:
    """The second layer's projection of values, of one kv head; it may be a part of a larger tensor."""
    fused = {"attn_v": slice(None), "attn_qkv": slice(-HEAD_DIM, None), "attn_kv_a_mqa": slice(HEAD_DIM)}
    found = {part: tensors[name] for part in fused if (name := f"blk.1.{part}.weight") in tensors}
    ((part, tensor),) = found.items()
    return tensor[fused[part]].astype(np.float32)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("name", CASES)
def test_a_file_is_what_its_format_says(tmp_path: Path, name: str, dtype: str) -> None:
    probe = engines.small(name, CASES[name])
    assert probe.write(tmp_path, dtype, "gguf") == probe.write(tmp_path, dtype, "gguf")
    values, tensors = loaded(tmp_path / "model.gguf")
    found = llama_cpp.DIALECTS[name].name
    assert values["general.architecture"] == found
    assert values[f"{found}.block_count"] == 2 and values[f"{found}.vocab_size"] == probe.layout.vocabulary
    assert np.array_equal(tensors["output.weight"].astype(np.float32), probe.network.output)
    assert np.array_equal(values_of(tensors), probe.network.layers[1].value)
    theirs = ("model.", "lm_head", ".mlp.", "self_attn", "linear_attn")
    assert not [n for n in tensors if any(part in n for part in theirs)]
    assert all(t.dtype == np.float32 for n, t in tensors.items() if t.ndim == 1 or n.endswith(".bias"))
    words = [f"\u2581{word}" for word in probe.layout.words()]
    assert values["tokenizer.ggml.tokens"] == words and len(words) == probe.layout.vocabulary
    assert words[values["tokenizer.ggml.eos_token_id"]] == "\u2581<zero>"
    assert values["tokenizer.ggml.scores"] == [-1.0] * len(words)
    assert values["tokenizer.ggml.add_bos_token"] is False
    assert Probe.load(tmp_path).layers == probe.layers


@pytest.mark.parametrize("kv_heads", [1, 4])
def test_a_linear_layer_computes_what_the_network_does(tmp_path: Path, kv_heads: int) -> None:
    probe = Probe.of("qwen3-next", "linear,full")
    probe = replace(probe, layout=replace(probe.layout, kv_heads=kv_heads))
    probe.write(tmp_path, "f32", "gguf")
    first, second = probe.network.states(engines.text(probe, 9))[:2]
    made = gated_delta.given(*loaded(tmp_path / "model.gguf"), first)
    assert np.abs(second - first).max() > 0.9
    assert np.abs(made - (second - first)).max() < 1e-6


@pytest.mark.must("nothing wrong: a state fades a little otherwise with each token that is rounded")
def test_a_state_in_f32_is_read_far_back(tmp_path: Path) -> None:
    probe = Probe.of("qwen3-next", "linear,full")
    probe.write(tmp_path, "f32", "gguf")
    tokens = engines.text(probe, 200)
    first = probe.network.states(tokens)[0]
    second = first + gated_delta.given(*loaded(tmp_path / "model.gguf"), first, np.float32)
    hidden = probe.network.gone_on([first, second], {}, np.arange(len(tokens)))[-1]
    judgement = read(probe, tokens, probe.network.logits(hidden), Precision("f32"))
    assert judgement.wrong == [], judgement.told()


@pytest.mark.parametrize(
    ("name", "layers", "words"),
    [
        (
            "llama4",
            "chunk 8,full",
            "chunks of 8192 alone: --layers '3\\*chunk 8192,full'",
        ),
        ("qwen3", "2*window 8", "knows no windows of qwen3"),
        ("mistral", "2*window 8", "knows no windows of mistral"),
        ("gemma3", "full,window 8", "in a period, whose last layer is full"),
    ],
)
def test_what_llama_cpp_cannot_have_is_refused(tmp_path: Path, name: str, layers: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        Probe.of(name, layers).write(tmp_path / "out", "f32", "gguf")
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example in C, built against the folder LLAMA_CPP: the sources of llama.cpp, and its libraries in lib."""
    if "LLAMA_CPP" not in os.environ:
        pytest.skip("LLAMA_CPP is not set: the folder of a llama.cpp")
    root, out = Path(os.environ["LLAMA_CPP"]), tmp_path_factory.mktemp("ask") / "ask"
    source = Path(__file__).parents[3] / "docs" / "examples" / "probe" / "llama_cpp.c"
    libraries = [str(next((root / "lib").glob(f"lib{name}.*"))) for name in ("llama", "ggml", "ggml-base")]
    includes = [f"-I{root / folder}" for folder in ("include", "ggml/include")]
    rpath = f"-Wl,-rpath,{root / 'lib'}"
    command = ["cc", "-O1", "-Wall", "-Werror", "-o", str(out), str(source), *includes, *libraries, rpath]
    subprocess.run(command, check=True)
    return out


ROWS = {
    ("f32", "f32"): Precision("f16", rows="f32"),
    ("f32", "f16"): Precision("f16"),
    ("bf16", "f16"): Precision("bf16"),
    ("f32", "q8_0"): Precision("f16", rows="q8_0"),
    ("f32", "q4_0"): Precision("f16", rows="q4_0"),
}
"""Weights, rows, and how exact the answers are: on a CPU, flash attention keeps f16."""


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "rows"), ROWS)
@pytest.mark.parametrize(
    ("name", "layers"),
    [
        *CASES.items(),
        ("llama", "8*full"),
        ("gemma3", "5*window 8,full"),
        ("gpt-oss", "2*window 8"),
        ("qwen3-next", "full,linear,linear"),
    ],
)
def test_llama_cpp_is_read(tmp_path: Path, program: Path, name: str, layers: str, dtype: str, rows: str) -> None:
    probe = Probe.of(name, layers)
    probe.write(tmp_path, dtype, "gguf")
    for chunk in (40, 13, 1):
        tokens = engines.text(probe, 40, chunk)
        command = [str(program), str(tmp_path / "model.gguf"), rows, str(chunk), *map(str, tokens)]
        environment = os.environ | {"BACKENDS": f"{os.environ['LLAMA_CPP']}/lib"}
        out = subprocess.run(command, capture_output=True, check=True, env=environment).stdout
        answers = np.frombuffer(out, np.float32).reshape(len(tokens), -1)
        judgement = read(probe, tokens, answers, ROWS[dtype, rows])
        assert judgement.wrong == [], judgement.told()
        if (dtype, rows) == ("f32", "f16"):
            assert np.abs(answers - engines.logits(probe, tokens)).max() < 0.05


def test_llama_cpp_reads_words(tmp_path: Path) -> None:
    llama = pytest.importorskip("llama_cpp")
    engines.small("gemma3", CASES["gemma3"]).write(tmp_path, "f32", "gguf")
    model = llama.Llama(str(tmp_path / "model.gguf"), vocab_only=True, verbose=False)
    assert model.tokenize(b"t1 t12 t0", add_bos=True) == [1, 12, 0]
    assert model.detokenize([1, 12, 0]) == b" t1 t12 t0"
