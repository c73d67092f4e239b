"""llama.cpp in this process, through llama-cpp-python: its memory, under a small server of slots.

What `seq_pos_min` and `seq_rm` say is heeded. `driver` has one buffer for all sequences, `streams` one for each,
`swa_full` one with as many cells for layers with windows as for others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import llama_cpp as llama

from kvadapters.engines.llama.context import TYPES, Opened, Sizes
from kvadapters.serving.driver import Declared, Wanted
from kvadapters.serving.slots import Piece, Slots
from kvadapters.serving.stepped import Stepped
from kvspec.errors import BadInput
from kvspec.geometry import Array

CELLS, CHUNK, SEQUENCES = 2048, 64, 4
"""Sizes where none are asked for. A batch has two chunks."""


class Context(Opened):
    """The memory of a context. Raises BadInput if llama.cpp does not make it."""

    copies = True

    def __init__(self, wanted: Wanted, unified: bool, swa_full: bool) -> None:
        chunk, sequences = wanted.chunk or CHUNK, wanted.sequences or SEQUENCES
        cells, rows = wanted.block * wanted.blocks or CELLS, wanted.rows or wanted.dtype
        sizes = Sizes(cells, chunk, sequences, rows, unified, swa_full)
        super().__init__(Path(wanted.folder, "model.gguf"), sizes)

    def keep(self, sequence: int, count: int) -> int:
        """Keep the first rows, if all that the query behind them sees are there; else none. Give how many."""
        needed = max(0, count - self.window + 1) if self.window else 0
        there = count and 0 <= llama.llama_memory_seq_pos_min(self.memory, sequence) <= needed
        if there and llama.llama_memory_seq_rm(self.memory, sequence, count, -1):
            return count
        llama.llama_memory_seq_rm(self.memory, sequence, -1, -1)
        return 0

    def copy(self, source: int, sequence: int, count: int) -> None:
        """Copy the first rows of a sequence; between streams, all of them."""
        end = count if self.unified else -1
        llama.llama_memory_seq_cp(self.memory, source, sequence, -1, end)

    def decode(self, pieces: Sequence[Piece]) -> list[Array] | None:
        """Decode a batch. Raises RuntimeError."""
        at, outputs = 0, list[int]()
        for piece in pieces:
            for i, token in enumerate(piece.tokens):
                self.batch.token[at], self.batch.pos[at] = token, len(piece.slot.held) + i
                self.batch.n_seq_id[at], self.batch.seq_id[at][0] = 1, piece.slot.number
                self.batch.logits[at] = i >= len(piece.tokens) - piece.outputs
                outputs += [at] if self.batch.logits[at] else []
                at += 1
        self.batch.n_tokens = at
        if (status := llama.llama_decode(self.context, self.batch)) not in (0, 1):
            raise RuntimeError(f"llama_decode returned {status}")
        return None if status else [self.logits(at) for at in outputs]


def driver(wanted: Wanted, unified: bool = True, swa_full: bool = False) -> Stepped:
    """Start llama.cpp. It has cells, no blocks: a pool is block times blocks cells. Raises BadInput."""
    rows, sequences = wanted.rows or wanted.dtype, wanted.sequences or SEQUENCES
    wanted.only("block", "blocks", "chunk", "drafts", "sequences", "rows")
    if rows not in TYPES:
        raise BadInput(f"llama.cpp has rows of {', '.join(TYPES)}; not {rows}")
    if bool(wanted.block) != bool(wanted.blocks) or wanted.block * wanted.blocks % 256:
        raise BadInput("declare block and blocks, whose product is a multiple of 256 cells: block=16,blocks=16")
    made = Stepped(
        lambda: Slots(Context(wanted, unified, swa_full), sequences, wanted.drafts), Declared("llama.cpp")
    )
    sizes = {**wanted.sizes(), "chunk": wanted.chunk or CHUNK, "sequences": sequences}
    made.declared = Declared(
        name="llama.cpp",
        version=f"llama-cpp-python {llama.__version__}",
        flags=f"kv_unified={unified} swa_full={swa_full} n_batch={made.engine.memory.most} rows={rows}",
        can=frozenset({"reuse", "concurrent", "cancel", "cached", "reset"}),
        **{**sizes, "longest": made.engine.memory.longest},
    )
    return made


def streams(wanted: Wanted) -> Stepped:
    """The same, with cells of its own for each sequence."""
    return driver(wanted, unified=False)


def swa_full(wanted: Wanted) -> Stepped:
    """The same, with as many cells for layers with windows as for others."""
    return driver(wanted, swa_full=True)
