"""The formats of a checkpoint, by name: each writes a probe's weights and what engines read beside them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from kvadapters.probe.architecture import Architecture, sizes
from kvadapters.probe.formats import gguf, llama_cpp, mlx, safetensors, tokenizer
from kvadapters.probe.layout import Layout
from kvadapters.probe.network import Network
from kvspec.errors import BadInput, CannotRun

DTYPES = tuple(safetensors.DTYPES)


class _Probe(Protocol):
    """What is written of a probe."""

    @property
    def architecture(self) -> Architecture: ...
    @property
    def layout(self) -> Layout: ...
    @property
    def network(self) -> Network: ...


def leave(into: Path, files: Mapping[str, Any]) -> None:
    """Write files of JSON. Raises OSError."""
    into.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (into / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _safetensors(probe: _Probe, into: Path, dtype: str) -> str:
    """Write model.safetensors, config.json and the tokenizer, as Hugging Face has them."""
    leave(into, _configs(probe, dtype))
    return safetensors.write(into / "model.safetensors", probe.architecture.tensors(probe.network), dtype)


def _configs(probe: _Probe, dtype: str) -> dict[str, Any]:
    config = sizes(probe.layout) | probe.architecture.config(probe.layout)
    config |= {"torch_dtype": safetensors.DTYPES[dtype][2]}
    ends = {"eos_token_id": probe.layout.zero, "pad_token_id": probe.layout.zero}
    words = tokenizer.files(list(probe.layout.words()))
    return {"config.json": config, "generation_config.json": ends, **words}


def _mlx(probe: _Probe, into: Path, dtype: str) -> str:
    """Write the same under the names and with the configuration that mlx-lm has."""
    found = mlx.dialect(probe.architecture, probe.layout)
    files = _configs(probe, dtype)
    files["config.json"] = found.config(files["config.json"], probe.layout)
    leave(into, files)
    tensors = found.changed(probe.layout, probe.architecture.tensors(probe.network))
    return safetensors.write(into / "model.safetensors", tensors, dtype, "mlx")


def _gguf(probe: _Probe, into: Path, dtype: str) -> str:
    """Write model.gguf, as llama.cpp takes it."""
    values = llama_cpp.values(probe.architecture, probe.layout)
    tensors = llama_cpp.tensors(probe.architecture, probe.layout, probe.architecture.tensors(probe.network))
    into.mkdir(parents=True, exist_ok=True)
    return gguf.write(into / "model.gguf", values, tensors, dtype)


def _onnx(probe: _Probe, into: Path, dtype: str) -> str:
    """Write model.onnx, genai_config.json and the tokenizer, as onnxruntime-genai takes them."""
    try:
        from kvadapters.probe.formats import onnx
    except ModuleNotFoundError as e:
        raise CannotRun(f"--format onnx needs {e.name}: pip install 'kvconform[onnx]'") from None
    onnx.checked(probe.architecture)
    if dtype != "f32":
        raise BadInput(f"a probe of ONNX is written in f32, in which onnxruntime attends on a CPU; not in {dtype}")
    words = tokenizer.files(list(probe.layout.words()))
    leave(into, {"genai_config.json": onnx.config(probe.architecture, probe.layout), **words})
    return onnx.write(into / "model.onnx", probe.network)


WRITERS: dict[str, Callable[[_Probe, Path, str], str]] = {
    "safetensors": _safetensors,
    "gguf": _gguf,
    "onnx": _onnx,
    "mlx": _mlx,
}
"""A format's name, and what writes it into a folder in a dtype: it gives the SHA-256 of the weights."""

LEFT = (
    *("config.json", "generation_config.json", "genai_config.json", "tokenizer.json", "tokenizer_config.json"),
    *(f"model.{file_format}" for file_format in ("safetensors", "gguf", "onnx")),
)
"""What they write, each some of it. A checkpoint of another model has files of these names too."""
