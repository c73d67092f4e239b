"""onnxruntime runs a probe of ONNX in a session of its own. Its cache is the rows that the session hands out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from kvadapters.probe.checkpoint import Probe
from kvadapters.probe.layout import HEAD_DIM
from kvadapters.probe.model import Model, from_model
from kvspec.errors import BadInput


def load(folder: str, dtype: str) -> Model:
    """Load a probe of ONNX. Raises BadInput for another dtype than f32."""
    if dtype != "f32":
        raise BadInput(f"a probe of ONNX computes in f32, not in {dtype}")
    layout = Probe.load(folder).layout
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    path = str(Path(folder, "model.onnx"))
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()[1:]]
    none = np.zeros((1, layout.kv_heads, 0, HEAD_DIM), np.float32)

    def decode(cache: dict[str, Any], tokens: list[int]) -> Any:
        rows = next(iter(cache.values())).shape[2] + len(tokens)
        ids, mask = np.array([tokens], np.int64), np.ones((1, rows), np.int64)
        past = {name.replace("present", "past_key_values"): kept for name, kept in cache.items()}
        logits, *present = session.run(None, {"input_ids": ids, "attention_mask": mask, **past})
        cache.update(zip(names, present, strict=True))
        return logits[0]

    return from_model(lambda: dict.fromkeys(names, none), decode, _rewind, dict)


def _rewind(cache: dict[str, Any], tokens: int) -> None:
    """Cut rows, as a caller of onnxruntime does."""
    cache.update({name: kept[:, :, : kept.shape[2] - tokens] for name, kept in cache.items()})
