"""The stock architectures that a probe can have, one file for each family."""

from __future__ import annotations

from kvadapters.probe.architecture import Architecture
from kvadapters.probe.architectures import deepseek, gemma3, gpt_oss, llama, llama4, phi3, qwen3_next
from kvspec.errors import BadInput

ARCHITECTURES = {
    architecture.name: architecture
    for architecture in (
        llama.LLAMA,
        llama.MISTRAL,
        llama.QWEN3,
        phi3.PHI3,
        gemma3.GEMMA3,
        gpt_oss.GPT_OSS,
        deepseek.DEEPSEEK,
        llama4.LLAMA4,
        qwen3_next.QWEN3_NEXT,
    )
}


def named(name: str) -> Architecture:
    """Give an architecture by its name. Raises BadInput."""
    if name not in ARCHITECTURES:
        raise BadInput(f"no probe of {name!r}; there are {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[name]
