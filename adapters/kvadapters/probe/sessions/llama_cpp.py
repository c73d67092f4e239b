"""llama.cpp whole, through llama-cpp-python: sequences of a context's memory, asked as caches are."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version

from kvadapters.probe.sessions import Engine, batch_of, from_folder, from_model, pool_of
from kvspec.errors import CannotRun

try:
    from kvadapters.probe.engines.llama_cpp import batched, streams, unified
except ImportError as e:
    raise CannotRun(f"llama.cpp cannot be imported ({e}); pip install 'kvconform[llama-cpp]'") from e


MANY = 64
"""Sequences of a pool's memory."""
STREAMS, UNIFIED = from_folder(streams), from_folder(unified)
SAID = {"version": version("llama-cpp-python")}
CUT = frozenset({"rewind", "copy", "drafts"})
CUTS: dict[str, int | str] = {"growing.range": "clamped at 0"}
"""A rewind by more tokens than there are drops all."""

growing = from_model("llama-whole", "growing", Engine(STREAMS, file_format="gguf"), CUT, CUTS, SAID)
one_buffer = from_model("llama-whole-unified", "growing", Engine(UNIFIED, file_format="gguf"), CUT, CUTS, SAID)
pool = pool_of("llama-whole-pool", Engine(from_folder(streams, MANY), file_format="gguf"), SAID)
unified_pool = pool_of("llama-whole-unified-pool", Engine(from_folder(unified, MANY), file_format="gguf"), SAID)
batch = batch_of("llama-whole-batch", Engine(from_folder(partial(batched, False), MANY), file_format="gguf"), SAID)
unified_batch = batch_of(
    "llama-whole-unified-batch", Engine(from_folder(partial(batched, True), MANY), file_format="gguf"), SAID
)
sliding = from_model(
    "llama-whole-sliding",
    "ring",
    Engine(STREAMS, "gpt-oss", "gguf", hybrid=True),
    CUT,
    {"ring.range": "clamped at 0", "ring.rewind": -1},
    SAID,
)
