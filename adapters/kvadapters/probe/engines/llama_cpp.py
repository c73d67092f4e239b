"""llama.cpp, through llama-cpp-python: the sequences of a context's memory.

`streams` has cells of its own for each sequence, as llama.cpp has by default; `unified` one buffer for all. The
others have rows of eight or four bits."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import llama_cpp as llama
import numpy as np

from kvadapters.engines.llama.context import Opened, Sizes
from kvadapters.probe.model import Batched, Model, from_model
from kvspec.geometry import Array

SEQUENCES, CHUNK = 8, 8
"""Sequences of a context, and tokens of one evaluation: a batch takes two."""
CELLS = 256
"""Cells of a sequence."""


@dataclass
class Memory:
    """A context, and the numbers of its sequences that are free."""

    context: Opened
    free: list[int]

    @property
    def held(self) -> Any:
        """What llama.cpp calls its memory."""
        return self.context.memory


@dataclass
class Held:
    """A sequence."""

    memory: Memory
    number: int

    @property
    def end(self) -> int:
        """The position of its next token."""
        return int(llama.llama_memory_seq_pos_max(self.memory.held, self.number)) + 1


def load(rows: str | None, unified: bool, folder: str, dtype: str, sequences: int = SEQUENCES) -> Model:
    """Load a probe of GGUF."""
    chunk = max(CHUNK, sequences // 2)  # with more sequences than tokens of a batch llama.cpp makes no context
    sizes = Sizes(CELLS * sequences, chunk, sequences, rows or dtype, unified)

    def opened() -> Held:
        return _beside(Memory(Opened(Path(folder, "model.gguf"), sizes), list(range(sequences))))

    tried = opened()
    shifts = llama.llama_memory_can_shift(tried.memory.held)
    return from_model(
        opened,
        lambda cache, tokens: _decode([cache], [tokens])[0],
        _rewind,
        _copy,
        beside=lambda cache: _beside(cache.memory),
        load=_load,
        batch=_decode,
        shift=_shift if shifts else None,
        drop=_drop,
    )


def batched(unified: bool, folder: str, dtype: str, sequences: int) -> Batched:
    """Load a probe of GGUF; a batch is some sequences of a context of its own."""
    model = load(None, unified, folder, dtype, sequences)

    def opened(count: int) -> list[Held]:
        first: Held = model.open()
        return [first, *(_beside(first.memory) for _ in range(count - 1))]

    def feed(held: list[Held], tokens: Sequence[list[int]], _: str) -> list[Any]:
        asked = [s for s, of in enumerate(tokens) if of]
        answers = dict(zip(asked, _decode([held[s] for s in asked], [tokens[s] for s in asked]), strict=True))
        return [answers.get(s, ()) for s in range(len(tokens))]

    return Batched(opened, feed, _trim, _arrange, lambda held: [_copy(one) for one in held], _let_go)


def _trim(held: Sequence[Held], counts: Sequence[int]) -> None:
    for one, n in zip(held, counts, strict=True):
        if n:
            _rewind(one, n)


def _arrange(held: Sequence[Held], order: Sequence[int]) -> list[Held]:
    """Keep sequences, copy those that are listed again, and let the others go."""
    found = [_copy(held[s]) if s in order[:at] else held[s] for at, s in enumerate(order)]
    _let_go([one for s, one in enumerate(held) if s not in order])
    return found


def _let_go(held: Sequence[Held]) -> None:
    for one in held:
        _drop(one)


streams, unified = partial(load, None, False), partial(load, None, True)
q8_0, q4_0 = partial(load, "q8_0", False), partial(load, "q4_0", False)


def _beside(memory: Memory) -> Held:
    return Held(memory, memory.free.pop(0))


def _decode(caches: Sequence[Held], tokens: Sequence[list[int]]) -> list[Array]:
    """Decode tokens, sequence after sequence, in batches as large as the context takes. Raises RuntimeError."""
    context, rows = caches[0].memory.context, list[Array]()
    new = [
        (cache.number, cache.end + i, token)
        for cache, of in zip(caches, tokens, strict=True)
        for i, token in enumerate(of)
    ]
    for at in range(0, len(new), context.most):
        rows += _decoded(context, new[at : at + context.most])
    ends = np.cumsum([len(of) for of in tokens])[:-1]
    return np.split(np.array(rows), ends)


def _decoded(context: Opened, new: Sequence[tuple[int, int, int]]) -> list[Array]:
    """Decode one batch of sequences, positions and tokens."""
    batch = context.batch
    for i, (number, position, token) in enumerate(new):
        batch.token[i], batch.pos[i], batch.seq_id[i][0] = token, position, number
        batch.n_seq_id[i], batch.logits[i] = 1, True
    batch.n_tokens = len(new)
    if status := llama.llama_decode(context.context, batch):
        raise RuntimeError(f"llama_decode returned {status}")
    return [context.logits(i) for i in range(len(new))]


def _rewind(cache: Held, n: int) -> None:
    """Remove the newest positions. Raises ValueError where rows of the window before them are gone, which llama.cpp
    leaves to its caller to ask."""
    to = cache.end - n
    first = int(llama.llama_memory_seq_pos_min(cache.memory.held, cache.number))
    if first > max(0, to - cache.memory.context.window + 1) and cache.memory.context.window:
        raise ValueError(f"rows before {first} are gone")
    if not llama.llama_memory_seq_rm(cache.memory.held, cache.number, to, -1):
        raise ValueError("llama_memory_seq_rm returned false")


def _copy(cache: Held) -> Held:
    other = _beside(cache.memory)
    llama.llama_memory_seq_cp(cache.memory.held, cache.number, other.number, -1, -1)
    return other


def _load(cache: Held) -> Held:
    """Save a sequence's state, and load it as another sequence. Raises RuntimeError."""
    context, other = cache.memory.context.context, _beside(cache.memory)
    size = llama.llama_state_seq_get_size(context, cache.number)
    data = (ctypes.c_uint8 * size)()
    saved = llama.llama_state_seq_get_data(context, data, size, cache.number)
    if saved != size or not llama.llama_state_seq_set_data(context, data, size, other.number):
        raise RuntimeError("the state was not saved, or not loaded")
    return other


def _shift(cache: Held, n: int) -> None:
    """Remove the oldest positions, and move the others to the front, as a server does whose context is full."""
    llama.llama_memory_seq_rm(cache.memory.held, cache.number, 0, n)
    llama.llama_memory_seq_add(cache.memory.held, cache.number, n, -1, -n)


def _drop(cache: Held) -> None:
    if not cache.memory.context.context:  # in a cycle, the context may have ended before its sequences
        return
    llama.llama_memory_seq_rm(cache.memory.held, cache.number, -1, -1)
    cache.memory.free.append(cache.number)
