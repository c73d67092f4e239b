"""llama.cpp whole, through llama-cpp-python: sequences of a context's memory, asked as caches are."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from kvadapters.probe.sessions import Engine, Wanted, from_model, pool_of
from kvspec.errors import CannotRun

try:
    from kvadapters.probe.engines.llama_cpp import streams, unified
except ImportError as e:
    raise CannotRun(f"llama.cpp cannot be imported ({e}); pip install 'kvconform[llama-cpp]'") from e


def _streams(wanted: Wanted) -> Any:
    return streams(wanted.folder, wanted.dtype)


def _unified(wanted: Wanted) -> Any:
    return unified(wanted.folder, wanted.dtype)


def _many(wanted: Wanted) -> Any:
    return streams(wanted.folder, wanted.dtype, MANY)


def _many_unified(wanted: Wanted) -> Any:
    return unified(wanted.folder, wanted.dtype, MANY)


MANY = 64
"""Sequences of a pool's memory."""
SAID = {"version": version("llama-cpp-python")}
CUT = frozenset({"rewind", "copy", "drafts"})
CUTS: dict[str, int | str] = {"growing.range": "clamped at 0"}
"""A rewind by more tokens than there are drops all."""

growing = from_model("llama-whole", "growing", Engine(_streams, file_format="gguf"), CUT, CUTS, SAID)
one_buffer = from_model("llama-whole-unified", "growing", Engine(_unified, file_format="gguf"), CUT, CUTS, SAID)
pool = pool_of("llama-whole-pool", Engine(_many, file_format="gguf"), SAID)
unified_pool = pool_of("llama-whole-unified-pool", Engine(_many_unified, file_format="gguf"), SAID)
sliding = from_model(
    "llama-whole-sliding",
    "ring",
    Engine(_streams, "gpt-oss", "gguf", hybrid=True),
    CUT,
    {"ring.range": "clamped at 0", "ring.rewind": -1},
    SAID,
)
