"""A context of llama.cpp, through llama-cpp-python, of a model in a file: its memory, and a batch's logits."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kvspec.errors import BadInput, CannotRun
from kvspec.geometry import Array

try:
    import llama_cpp as llama
except ImportError as e:
    raise CannotRun(f"llama.cpp cannot be imported ({e}); pip install 'kvconform[llama-cpp]'") from e

TYPES = {"f32": 0, "f16": 1, "bf16": 30, "q8_0": 8, "q4_0": 2}
"""Forms of rows, by their numbers in ggml. Those below f32 take flash attention, as llama.cpp itself chooses."""

_silent = llama.llama_log_callback(lambda level, text, data: None)
llama.llama_log_set(_silent, None)


class Sizes(NamedTuple):
    """How a context is made. A batch has two chunks. `unified` is one buffer for all sequences, and `swa_full` one
    with as many cells for layers with windows as for others."""

    cells: int
    chunk: int
    sequences: int
    rows: str
    unified: bool
    swa_full: bool = False


@lru_cache(1)
def _model(path: Path) -> Any:
    found = llama.llama_model_load_from_file(str(path).encode(), llama.llama_model_default_params())
    if not found:
        raise BadInput(f"llama.cpp does not load {path}; write it by kvconform probe --format gguf")
    return found


class Opened:
    """A context. Raises BadInput if llama.cpp does not make it."""

    def __init__(self, path: Path, sizes: Sizes) -> None:
        self.model, self.unified = _model(path), sizes.unified
        self.context = llama.llama_init_from_model(self.model, _params(sizes))
        if not self.context:
            raise BadInput(f"llama.cpp makes no context of {sizes}")
        self.memory, self.window = llama.llama_get_memory(self.context), llama.llama_model_n_swa(self.model)
        self.longest, self.most = llama.llama_n_ctx_seq(self.context), llama.llama_n_batch(self.context)
        self.ids = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(self.model))
        self.batch = llama.llama_batch_init(self.most, 0, 1)

    def __del__(self) -> None:
        if getattr(self, "batch", None):
            llama.llama_batch_free(self.batch)
            self.batch = None
        if getattr(self, "context", None):
            llama.llama_free(self.context)
            self.context = None

    def logits(self, at: int) -> Array:
        """Give the logits of a token of the last batch, [vocabulary]."""
        found: Array = np.ctypeslib.as_array(llama.llama_get_logits_ith(self.context, at), (self.ids,))
        return found.copy()


def _params(sizes: Sizes) -> Any:
    params = llama.llama_context_default_params()
    params.n_ctx, params.n_batch, params.n_ubatch = sizes.cells, 2 * sizes.chunk, sizes.chunk
    params.n_seq_max, params.kv_unified, params.swa_full = sizes.sequences, sizes.unified, sizes.swa_full
    params.n_threads = params.n_threads_batch = 1
    params.type_k = params.type_v = TYPES[sizes.rows]
    params.flash_attn_type = int(sizes.rows != "f32")
    return params
