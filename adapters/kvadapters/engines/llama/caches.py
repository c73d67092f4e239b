"""llama.cpp, through llama-cpp-python: the cache of a context, with and without a sliding window.

A caller of llama.cpp hands in tokens, and the model computes rows from them. So the adapter uses a model whose rows
are its embeddings: see `kvadapters.engines.llama.model`. The rows and the masks are those that attention itself
reads and applies. The callback that follows an evaluation is shown the cells that the layer attends to, and the
weights after the softmax. In these every row that a query sees weighs the same.

It does not claim rows of arbitrary bits: NaN and infinities do not go through a projection. It does not claim
whether a rewind would be accepted: `seq_rm` says yes. It does not claim who owns arrays: rows are copied on every
way. It claims no appends of no rows. Rows of another geometry cannot be said to the model: NumPy refuses them here,
before the engine sees them.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from kvadapters import scratch
from kvadapters.engines.limits import check_batch, check_heads, one_width
from kvadapters.update import UpdateAdapter, from_update
from kvspec.errors import CannotRun
from kvspec.geometry import DTYPES, Array, Config

try:
    import llama_cpp as llama

    from kvadapters.engines.llama.attention import Attention
    from kvadapters.engines.llama.model import TURNED, embedding_width, write
except ImportError as e:
    raise CannotRun(f"llama.cpp cannot be imported ({e}); pip install 'kvconform[llama-cpp]'") from e

PADDED = 256
"""llama.cpp makes a multiple of this many cells."""

ROWS = 1024
"""Cells of a sequence."""

BATCH = 8
"""The most sequences of a context. Each head of each sequence has `ROWS` by `ROWS` scores."""

HEADS = 64
"""The most heads of the model, whose weights grow with the square of heads times width."""

KEPT = 4
"""Most models that stay loaded while no cache uses them."""

FARTHEST = 2**31 - 1
"""The largest position that llama.cpp takes: it counts in 32 bits."""

CHUNK = 8
"""Tokens of one evaluation, if the cache is to have few cells."""

TYPES = {"f32": 0, "f16": 1, "bf16": 30}
"""The numbers of the dtypes in ggml."""

_silent = llama.llama_log_callback(lambda level, text, data: None)
llama.llama_log_set(_silent, None)
llama.llama_backend_init()


class Model:
    """A loaded model of this geometry. Raises RuntimeError if llama.cpp does not load it."""

    def __init__(self, heads: int, width: int, window: int | None) -> None:
        with TemporaryDirectory(prefix=scratch.prefix()) as folder:
            write(path := Path(folder, "model.gguf"), heads, width, window)
            params = llama.llama_model_default_params()
            params.use_mmap = False
            self.loaded = llama.llama_model_load_from_file(str(path).encode(), params)
        if not self.loaded:
            raise RuntimeError("the model was not loaded")

    def __del__(self) -> None:
        if getattr(self, "loaded", None):
            llama.llama_model_free(self.loaded)


model = lru_cache(KEPT)(Model)
"""The model of a geometry, loaded once while it is among those used last."""


class Cache:
    """A context of B sequences of one length, and what attention read in the layer that is looked at.

    Each sequence has cells of its own.
    """

    unified = False

    def __init__(self, config: Config) -> None:
        check_batch(config, BATCH)
        check_heads(config, HEADS)
        self.config, self.width = config, one_width(config, TURNED)
        layer = 1 if config.window is None else 0
        buffers = 1 if self.unified else config.batch
        self.attention = Attention(layer, buffers, config.kv_heads, self.width, DTYPES[config.dtype])
        self.model = model(config.kv_heads, self.width, config.window)
        self.context = llama.llama_init_from_model(self.model.loaded, self._params())
        if not self.context:
            raise RuntimeError("no context was made")
        self.memory = llama.llama_get_memory(self.context)

    def __del__(self) -> None:
        if getattr(self, "context", None):
            llama.llama_free(self.context)

    def _params(self) -> Any:
        """One evaluation for any append, one thread, and no flash attention, which shows no weights."""
        params = llama.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = ROWS * self.config.batch
        params.n_seq_max = self.config.batch
        params.n_threads = params.n_threads_batch = 1
        params.flash_attn_type = 0
        params.kv_unified = self.unified
        params.type_k = params.type_v = TYPES[self.config.dtype]
        params.cb_eval = self.attention.callback
        return params

    def update(self, keys: Array, values: Array) -> tuple[Array, Array]:
        """Decode a token for each row, and give the cells that attention read, those of all evaluations."""
        self.attention.clear()
        sequences = np.repeat(np.arange(self.config.batch), keys.shape[2])
        self._decode(self._embeddings(keys, values), sequences)
        blocks = self.attention.blocks
        return self._cells([block.keys for block in blocks]), self._cells([block.values for block in blocks])

    def _cells(self, arrays: list[Array]) -> Array:
        cells = np.concatenate(arrays, axis=2)
        return np.broadcast_to(cells, (self.config.batch, *cells.shape[1:]))

    def _embeddings(self, keys: Array, values: Array) -> Array:
        """The tokens `[B * n, size]`, sequence by sequence."""
        config, n = self.config, keys.shape[2]
        both = np.zeros((config.batch, n, 2, config.kv_heads, self.width), np.float32)
        for part, rows in enumerate((keys, values)):
            if rows.dtype != DTYPES[config.dtype] or rows.shape != config.shape("k", n):
                raise ValueError(f"rows {rows.shape} of {rows.dtype} are no rows of this model")
            both[:, :, part] = rows.swapaxes(1, 2)
        flat = both.reshape(config.batch * n, 2 * config.kv_heads * self.width)
        size = embedding_width(config.kv_heads, self.width)
        return np.pad(flat, ((0, 0), (0, size - flat.shape[1])))

    def _decode(self, tokens: Array, sequences: Array) -> None:
        """Decode tokens of these sequences, at the positions that llama.cpp counts. Raises RuntimeError."""
        n = len(tokens)
        batch = llama.llama_batch(
            n_tokens=n,
            embd=tokens.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
            n_seq_id=(ctypes.c_int32 * n)(*[1] * n),
            seq_id=(ctypes.POINTER(ctypes.c_int32) * n)(*[ctypes.pointer(ctypes.c_int32(s)) for s in sequences]),
            logits=(ctypes.c_int8 * n)(),
        )
        status = llama.llama_decode(self.context, batch)
        if status:
            raise RuntimeError(f"llama_decode returned {status}")

    def mask(self, n: int) -> Array:
        """The cells that weighed something in the last update, one block of columns for each evaluation."""
        blocks = [block.weights[:, :1] > 0 for block in self.attention.blocks]
        mask = np.zeros((len(blocks[0]), 1, *np.sum([b.shape[2:] for b in blocks], axis=0)), bool)
        row = column = 0
        for block in blocks:
            end, last = row + block.shape[2], column + block.shape[3]
            mask[:, :, row:end, column:last] = block
            row, column = end, last
        return mask.reshape(self.config.batch, 1, n, -1)

    def length(self) -> int:
        """One more than the last position."""
        return int(llama.llama_memory_seq_pos_max(self.memory, 0)) + 1

    def retained(self) -> int:
        """The positions from the first that is held to the last."""
        first = int(llama.llama_memory_seq_pos_min(self.memory, 0))
        return 0 if first < 0 else self.length() - first

    def trim(self, n: int) -> None:
        """Remove the newest n positions of each sequence. Positions are of 32 bits."""
        start = max(-FARTHEST, min(self.length() - n, FARTHEST))
        for sequence in range(self.config.batch):
            if not llama.llama_memory_seq_rm(self.memory, sequence, start, -1):
                raise RuntimeError("llama_memory_seq_rm returned false")

    def reset(self) -> None:
        """Clear the memory, its data too."""
        llama.llama_memory_clear(self.memory, True)

    def state(self) -> list[Any]:
        """Save the state of each sequence."""
        return [self._saved(sequence) for sequence in range(self.config.batch)]

    def _saved(self, sequence: int) -> Any:
        size = llama.llama_state_seq_get_size(self.context, sequence)
        data = (ctypes.c_uint8 * size)()
        if llama.llama_state_seq_get_data(self.context, data, size, sequence) != size:
            raise RuntimeError("the state was not saved")
        return data

    def set_state(self, saved: list[Any]) -> None:
        """Put the states back, each into its sequence."""
        for sequence, data in enumerate(saved):
            if not llama.llama_state_seq_set_data(self.context, data, len(data), sequence):
                raise RuntimeError("the state was not restored")


class Tight(Cache):
    """Sequences that share cells, as few as their windows and one evaluation of `CHUNK` tokens take.

    llama.cpp makes 256 cells or more, and uses those of rows beyond the window again. The others are held by two
    more sequences that have one prompt in common: no cell of several sequences is used again.
    """

    unified = True

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        size = embedding_width(config.kv_heads, self.width)
        tokens = np.ones((self._held(), size), np.float32)
        self._decode(tokens, np.full(len(tokens), config.batch))
        llama.llama_memory_seq_cp(self.memory, config.batch, config.batch + 1, -1, -1)

    def _held(self) -> int:
        """Cells that the sequences of this cache must not use."""
        window, batch = self.config.window or 0, self.config.batch
        cells = -(-(window * (batch + 2) + CHUNK) // PADDED) * PADDED
        return cells - batch * (window - 1) - CHUNK

    def _params(self) -> Any:
        params = super()._params()
        params.n_ctx = params.n_batch = params.n_ctx + self._held() + PADDED
        params.n_seq_max += 2
        params.n_ubatch = CHUNK
        params.swa_full = False
        return params


def adapter(name: str, kind: str, make: type[Cache], dialect: dict[str, Any], **functions: Any) -> UpdateAdapter:
    """Make the adapter of one kind."""
    return from_update(
        f"llama-{name}",
        kind=kind,
        make=make,
        update=Cache.update,
        mask=Cache.mask,
        length=Cache.length,
        also=("batch",),
        without=("ask", "bits"),
        dialect={"mask.made": "after", **dialect},
        said={
            "version": version("llama-cpp-python"),
            "limits": {
                "batch": BATCH,
                "rows": ROWS,
                "heads": HEADS,
                "dims": {"equal": True, "multiple": TURNED},
            },
        },
        **functions,
    )


BACK: dict[str, Any] = {"retained": Cache.retained, "trim": Cache.trim, "reset": Cache.reset}
"""What caches that hold every row can do."""

SAVED: dict[str, Any] = {"state": Cache.state, "set_state": Cache.set_state}
"""Not with a window: a saved state then holds only what the next token needs, and no rewind can follow."""

growing = adapter("growing", "growing", Cache, {"growing.range": "clamped"}, **BACK, **SAVED)
window = adapter("window", "ring", Cache, {"ring.range": "clamped", "ring.rewind": -1}, **BACK)
tight = adapter("window-tight", "ring", Tight, {})
