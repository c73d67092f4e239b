"""Writes the adapters of a probe: as PEFT has them, or as llama.cpp has them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kvadapters.probe.architecture import Architecture, Tensors
from kvadapters.probe.formats import gguf, llama_cpp, safetensors
from kvadapters.probe.layout import Layout
from kvadapters.probe.lora import ADAPTERS, changes
from kvspec.errors import BadInput

FOLDER = "adapters"
"""The folder beside a probe's weights in which they stand."""
CONFIG: dict[str, Any] = {
    "peft_type": "LORA",
    "task_type": "CAUSAL_LM",
    "base_model_name_or_path": None,
    "r": 1,
    "lora_alpha": 1,
    "lora_dropout": 0.0,
    "bias": "none",
    "target_modules": ["v_proj"],
    "inference_mode": True,
}
"""What adapter_config.json says: the change is added as it is."""


def _peft(_: Architecture, layout: Layout, name: str, into: Path) -> None:
    """Write adapter_config.json and adapter_model.safetensors into a folder of the adapter's name."""
    folder = into / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps(CONFIG, indent=1) + "\n", encoding="utf-8")
    found: Tensors = {}
    for number, change in enumerate(changes(layout, name)):
        prefix = f"base_model.model.model.layers.{number}.self_attn.v_proj"
        found |= {f"{prefix}.lora_A.weight": change.down, f"{prefix}.lora_B.weight": change.up}
    safetensors.write(folder / "adapter_model.safetensors", found, "f32")


def _llama_cpp(architecture: Architecture, layout: Layout, name: str, into: Path) -> None:
    """Write a GGUF of the adapter's name."""
    into.mkdir(parents=True, exist_ok=True)
    values: Mapping[str, gguf.Value] = {
        "general.type": "adapter",
        "general.architecture": llama_cpp.dialect(architecture, layout).name,
        "general.name": f"kvconform adapter {name}",
        "adapter.type": "lora",
        "adapter.lora.alpha": 1.0,
    }
    found: Tensors = {}
    for number, change in enumerate(changes(layout, name)):
        at = f"blk.{number}.attn_v.weight"
        found |= {f"{at}.lora_a": change.down, f"{at}.lora_b": change.up}
    gguf.write(into / f"{name}.gguf", values, found, "f32")


WRITERS: dict[str, Callable[[Architecture, Layout, str, Path], None]] = {"safetensors": _peft, "gguf": _llama_cpp}


def demand(file_format: str) -> None:
    """Raise BadInput for a format without adapters."""
    if file_format not in WRITERS:
        raise BadInput(f"no adapters in the format {file_format}; there are {', '.join(WRITERS)}")


def write(architecture: Architecture, layout: Layout, into: Path, file_format: str) -> None:
    """Write all adapters into a folder beside the weights. Raises OSError."""
    for name in ADAPTERS:
        WRITERS[file_format](architecture, layout, name, into / FOLDER)
