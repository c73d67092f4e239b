"""Reads a checkpoint as Hugging Face's libraries write it: config.json, model.safetensors, tokenizer.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]

ARCHITECTURES = ("llama", "mistral", "qwen3")
"""The model types whose network `model.py` computes."""


class Change(NamedTuple):
    """What an adapter adds to a tensor: `up` [out, rank] times `down` [rank, in]."""

    down: Float32
    up: Float32


Adapter = dict[str, Change]
"""The changes of an adapter, by the tensor's name."""


@dataclass(frozen=True)
class Config:
    """What config.json says of the network. `windows` has for each layer how many rows a query sees, its own among
    them. None means all."""

    heads: int
    kv_heads: int
    head_dim: int
    eps: float
    theta: float
    windows: tuple[int | None, ...]


def read_config(folder: Path) -> Config:
    """Read config.json. Raises ValueError for a network that is not computed here."""
    said = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if said["model_type"] not in ARCHITECTURES:
        raise ValueError(f"{folder}: model type {said['model_type']!r}; this engine has {', '.join(ARCHITECTURES)}")
    return Config(
        heads=said["num_attention_heads"],
        kv_heads=said["num_key_value_heads"],
        head_dim=said["head_dim"],
        eps=said["rms_norm_eps"],
        theta=said["rope_theta"],
        windows=_windows(said),
    )


def _windows(said: Mapping[str, Any]) -> tuple[int | None, ...]:
    """Give each layer's window. A config without types of layers has one window, or none, for all of them."""
    window = said.get("sliding_window")
    default = "sliding_attention" if window and said.get("use_sliding_window", True) else "full_attention"
    types = said.get("layer_types") or [default] * said["num_hidden_layers"]
    if unknown := set(types) - {"full_attention", "sliding_attention"}:
        raise ValueError(f"layers of type {', '.join(sorted(unknown))}; this engine has full and sliding attention")
    return tuple(window if kind == "sliding_attention" else None for kind in types)


def read_tensors(folder: Path, file: str = "model.safetensors") -> dict[str, Float32]:
    """Read all tensors of a file as float32. Raises ValueError for a file that is not whole."""
    path = folder / file
    data = np.memmap(path, np.uint8, "r")
    size = int.from_bytes(data[:8].tobytes(), "little")
    if size > len(data) - 8:
        raise ValueError(f"{path}: a header of {size} bytes in a file of {len(data)}")
    header = json.loads(data[8 : 8 + size].tobytes())
    body = data[8 + size :]
    return {name: _tensor(path, body, said) for name, said in header.items() if name != "__metadata__"}


def read_adapters(folder: Path) -> dict[str, Adapter]:
    """Read the adapters beside a checkpoint, as PEFT writes them: each changes some tensors by `up @ down`."""
    return {path.parent.name: _adapter(path.parent) for path in folder.glob("adapters/*/adapter_config.json")}


def _adapter(folder: Path) -> Adapter:
    said = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    tensors = read_tensors(folder, "adapter_model.safetensors")
    scale = np.float32(said["lora_alpha"] / said["r"])
    found = dict[str, Change]()
    for name, down in tensors.items():
        if name.endswith(".lora_A.weight"):
            up = tensors[name.replace("lora_A", "lora_B")]
            found[name.removeprefix("base_model.model.").replace(".lora_A", "")] = Change(down, up * scale)
    return found


def _tensor(path: Path, body: NDArray[np.uint8], said: Mapping[str, Any]) -> Float32:
    start, end = said["data_offsets"]
    if not 0 <= start <= end <= len(body):
        raise ValueError(f"{path}: a tensor from byte {start} to {end} of {len(body)}")
    data = np.array(body[start:end])
    if said["dtype"] == "BF16":  # its bits are the upper half of a float32
        found: Float32 = (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    else:
        found = data.view({"F32": np.float32, "F16": np.float16}[said["dtype"]]).astype(np.float32)
    return found.reshape(said["shape"])


def read_words(folder: Path) -> dict[str, int]:
    """Read the id of each word of a tokenizer that splits at blanks."""
    said = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    words: dict[str, int] = said["model"]["vocab"]
    return words
