"""The words in which a config of transformers says a scaling of RoPE. Other engines read the same config."""

from __future__ import annotations

from typing import Any

from kvspec.errors import Unsupported
from kvspec.rope.scaling import Linear, Llama3, LongRoPE, Scaling, YaRN


def rope_words(scaling: Scaling | None) -> dict[str, Any]:
    """Give what a config says of a scaling. Raises Unsupported for one that has no words."""
    match scaling:
        case None:
            return {"rope_type": "default"}
        case Linear(factor):
            return {"rope_type": "linear", "factor": factor}
        case Llama3(factor, low, high, original):
            return _of("llama3", factor, original, low_freq_factor=low, high_freq_factor=high)
        case YaRN(factor, original, fast, slow, attention, exact=exact):
            told = {"beta_fast": fast, "beta_slow": slow, "truncate": not exact, "attention_factor": attention}
            return _of("yarn", factor, original, **told)
        case LongRoPE(factor, original, short, long, attention):
            lists = {"short_factor": list(short), "long_factor": list(long)}
            return _of("longrope", factor, original, **lists, attention_factor=attention)
    raise Unsupported(f"no words for {scaling}")


def _of(name: str, factor: float, original: int, **more: Any) -> dict[str, Any]:
    return {"rope_type": name, "factor": factor, "original_max_position_embeddings": original, **more}
