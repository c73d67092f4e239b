"""transformers.js in a process of Node.js: `generate` behind caches of earlier requests, one request after another.

A request goes on from the earlier text that shares the longest beginning with it. That text's cache is cut to the
shared part. The package has no `crop`, so tensors are sliced. The builder of onnxruntime-genai turns the
checkpoint into ONNX."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import onnx

from kvadapters.probe.layout import HEAD_DIM
from kvadapters.serving.driver import Declared, Wanted
from kvadapters.serving.drivers.onnxruntime_genai import built
from kvadapters.serving.node import Node
from kvspec.errors import BadInput

PACKAGE = "@huggingface/transformers"
KEPT = 12
"""Caches of earlier requests that are kept."""


def driver(wanted: Wanted) -> Node:
    """Start it with a probe. Raises BadInput for what it does not have, CannotRun where it is not installed."""
    if wanted.only().dtype != "f32":
        raise BadInput("transformers.js computes in f32 here")
    settings = {"model": str(_laid_out(Path(wanted.folder)).resolve()), "kept": KEPT}
    started = Node(Path(__file__).with_suffix(".mjs"), PACKAGE, settings)
    can = frozenset({"reuse", "cached", "cancel", "reset"})
    started.declared = Declared("transformers.js", started.version, "device=cpu dtype=fp32", can=can, sequences=1)
    return started


def _laid_out(folder: Path) -> Path:
    """Lay a checkpoint out as transformers.js looks for one; give its folder."""
    into = folder / "transformers-js"
    if not (into / "config.json").exists():
        (into / "onnx").mkdir(parents=True, exist_ok=True)
        onnx.save(_whole(built(folder, None) / "model.onnx"), str(into / "onnx" / "model.onnx"))
        for name in ("generation_config.json", "config.json"):
            shutil.copy(folder / name, into)
    return into


def _whole(path: Path) -> Any:
    """Load a model with its weights, which the builder leaves beside it. The width of a cache's heads becomes a
    number: transformers.js takes 0 for a name that it does not know."""
    model = onnx.load(str(path))
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param == "kv_cache_dim":
                dim.dim_value = HEAD_DIM
    return model
