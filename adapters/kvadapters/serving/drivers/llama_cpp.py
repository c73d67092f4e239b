"""llama.cpp in this process, through llama-cpp-python: its memory, under a small server of slots.

A slot has a sequence of its own. A request takes the slot that was idle longest, and as many rows as it shares with
any slot, by `seq_cp` and `seq_rm`. What `seq_pos_min` and `seq_rm` say is heeded: where rows that a later query needs
are gone, the text is computed from its beginning. Where a batch finds no cells, an idle slot is emptied, then the
newest request goes back to those that wait. Drafts are what followed the last two tokens earlier in the text.

`driver` has one buffer for all sequences, `streams` one for each, `swa_full` windows that keep all rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from kvadapters.serving.driver import Declared, Wanted
from kvadapters.serving.stepped import Stepped
from kvspec.errors import BadInput, CannotRun
from kvspec.geometry import Array

try:
    import llama_cpp as llama
except ImportError as e:
    raise CannotRun(f"llama.cpp cannot be imported ({e}); pip install 'kvconform[llama-cpp]'") from e

TYPES = {"f32": 0, "f16": 1, "bf16": 30, "q8_0": 8, "q4_0": 2}
"""Forms of rows, by their numbers in ggml. Those below f32 take flash attention, as llama.cpp itself chooses."""
CELLS, CHUNK, SEQUENCES = 2048, 64, 4
"""Sizes where none are asked for. A batch has two chunks."""

_silent = llama.llama_log_callback(lambda level, text, data: None)
llama.llama_log_set(_silent, None)


@dataclass(eq=False)
class Task:
    """A request on its way; as an output, its answer."""

    id: int
    text: list[int]
    new: int
    prompt: int
    logits: list[Array] = field(default_factory=list)
    reused: int = -1
    sample: int = 0

    @property
    def tokens(self) -> list[int]:
        """Give the answer so far."""
        return self.text[self.prompt :]

    @property
    def logprobs(self) -> Array:
        """Give the logits of the answer, [new, vocabulary]."""
        return np.array(self.logits)


@dataclass(eq=False)
class Slot:
    """A sequence, the tokens whose rows it has, the request that it computes, and when it last did so."""

    number: int
    held: list[int] = field(default_factory=list)
    task: Task | None = None
    used: int = 0


Piece = tuple[Slot, Task, list[int], int]
"""Tokens of a slot that go into a batch, and how many of its last ones give logits."""


@lru_cache(1)
def _model(path: Path) -> Any:
    found = llama.llama_model_load_from_file(str(path).encode(), llama.llama_model_default_params())
    if not found:
        raise BadInput(f"llama.cpp does not load {path}; write it by kvconform probe --format gguf")
    return found


class Engine:
    """A context and its slots, for `Stepped`."""

    def __init__(self, wanted: Wanted, unified: bool, swa_full: bool) -> None:
        self.model, self.drafts, self.unified = _model(Path(wanted.folder, "model.gguf")), wanted.drafts, unified
        self.context = llama.llama_init_from_model(self.model, _params(wanted, unified, swa_full))
        if not self.context:
            raise BadInput(f"llama.cpp makes no context for {wanted}")
        self.memory, self.window = llama.llama_get_memory(self.context), llama.llama_model_n_swa(self.model)
        self.longest = llama.llama_n_ctx_seq(self.context)
        self.most = llama.llama_n_batch(self.context)
        self.ids = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(self.model))
        self.batch = llama.llama_batch_init(self.most, 0, 1)
        self.slots = [Slot(i) for i in range(wanted.sequences or SEQUENCES)]
        self.waiting, self.added, self.steps, self.counted = list[Task](), 0, 0, Counter[str]()

    def __del__(self) -> None:
        if getattr(self, "batch", None):
            llama.llama_batch_free(self.batch)
        if getattr(self, "context", None):
            llama.llama_free(self.context)

    def add(self, tokens: list[int], new: int, *, samples: int, salt: str, bias: dict[int, float]) -> int:
        """Take a request. Raises ValueError if it does not fit."""
        if len(tokens) + new > self.longest:
            raise ValueError(f"{len(tokens)} tokens and {new} new ones; a sequence has {self.longest} cells")
        self.added += 1
        self.waiting.append(Task(self.added, list(tokens), new, len(tokens)))
        return self.added

    def abort(self, number: int) -> None:
        """Let a request go; its rows stay in its slot."""
        self.waiting = [task for task in self.waiting if task.id != number]
        for slot in self.slots:
            if slot.task and slot.task.id == number:
                slot.task = None

    def counts(self) -> Counter[str]:
        """Give what happened so far, by `COUNTED`."""
        return self.counted

    def step(self) -> list[Task]:
        """Decode one batch; give the requests that it finished."""
        self.steps += 1
        self._assign()
        while pieces := self._pieces():
            status = self._decode(pieces)
            if status == 0:
                return self._advance(pieces)
            if status != 1 or not self._make_room():
                raise RuntimeError(f"llama_decode returned {status}")
        return []

    def _assign(self) -> None:
        while self.waiting and (free := [slot for slot in self.slots if not slot.task]):
            task, slot = self.waiting.pop(0), min(free, key=lambda s: s.used)
            source = max(self.slots, key=lambda s: _shared(s.held, task.text))
            count = min(_shared(source.held, task.text), len(task.text) - 1)
            if source is not slot:
                self._keep(slot, 0)
            if source is not slot and count:
                end = count if self.unified else -1  # streams are copied whole
                llama.llama_memory_seq_cp(self.memory, source.number, slot.number, -1, end)
                slot.held = list(source.held)
            self._keep(slot, count)
            slot.task = task
            if task.reused < 0:
                task.reused = len(slot.held)
                self.counted["cached tokens"] += len(slot.held)

    def _keep(self, slot: Slot, count: int) -> None:
        """Keep the rows of the first `count` tokens, if all that the query behind them sees are there; else none."""
        needed = max(0, count - self.window + 1) if self.window else 0
        first = llama.llama_memory_seq_pos_min(self.memory, slot.number)
        there = count and 0 <= first <= needed
        if not there or not llama.llama_memory_seq_rm(self.memory, slot.number, count, -1):
            llama.llama_memory_seq_rm(self.memory, slot.number, -1, -1)
            count = 0
        del slot.held[count:]

    def _pieces(self) -> list[Piece]:
        """Choose what is computed: those first of which least is left."""
        room, found = self.most, list[Piece]()
        busy = [(slot, slot.task, len(slot.held)) for slot in self.slots if slot.task]
        for slot, task, done in sorted(busy, key=lambda each: len(each[1].text) - each[2]):
            tokens = task.text[done : done + room]
            outputs = int(bool(tokens) and done + len(tokens) == len(task.text))
            if outputs:
                most = min(self.drafts, task.new - len(task.tokens) - 1, room - len(tokens))
                drafts = _drafted(task.text, most)
                tokens, outputs = tokens + drafts, 1 + len(drafts)
            room -= len(tokens)
            found += [(slot, task, tokens, outputs)] if tokens else []
        return found

    def _decode(self, pieces: list[Piece]) -> int:
        at = 0
        for slot, _, tokens, outputs in pieces:
            for i, token in enumerate(tokens):
                self.batch.token[at], self.batch.pos[at] = token, len(slot.held) + i
                self.batch.n_seq_id[at], self.batch.seq_id[at][0] = 1, slot.number
                self.batch.logits[at] = i >= len(tokens) - outputs
                at += 1
        self.batch.n_tokens = at
        return int(llama.llama_decode(self.context, self.batch))

    def _make_room(self) -> bool:
        """Empty the slot that was idle longest, or send the newest of several requests back."""
        if idle := [slot for slot in self.slots if slot.held and not slot.task]:
            self._keep(min(idle, key=lambda s: s.used), 0)
            self.counted["evictions"] += 1
            return True
        slot, task = max(((s, s.task) for s in self.slots if s.task), key=lambda each: each[1].id)
        if sum(s.task is not None for s in self.slots) < 2:
            return False
        slot.task = None
        self._keep(slot, 0)
        self.waiting.insert(0, task)
        self.counted["preemptions"] += 1
        return True

    def _advance(self, pieces: list[Piece]) -> list[Task]:
        """Read logits, accept drafts that are the likeliest, and take the others out of the memory."""
        end, finished = 0, list[Task]()
        for slot, task, tokens, outputs in pieces:
            end, slot.used = end + len(tokens), self.steps
            slot.held += tokens
            drafts = tokens[len(tokens) - outputs + 1 :] if outputs else []
            for i in range(outputs):
                logits = llama.llama_get_logits_ith(self.context, end - outputs + i)
                task.logits.append(np.ctypeslib.as_array(logits, (self.ids,)).copy())
                task.text.append(int(task.logits[-1].argmax()))
                if drafts[i : i + 1] != task.text[-1:]:
                    self.counted["drafts accepted"] += i
                    self.counted["drafts rejected"] += len(drafts) - i
                    break
            if outputs and len(slot.held) >= len(task.text):
                self._keep(slot, len(task.text) - 1)
            if len(task.tokens) == task.new:
                slot.task = None
                finished.append(task)
        return finished


def _shared(held: list[int], text: list[int]) -> int:
    return next((i for i, (a, b) in enumerate(zip(held, text, strict=False)) if a != b), min(len(held), len(text)))


def _drafted(text: list[int], most: int) -> list[int]:
    found = (i + 2 for i in range(len(text) - 3, -1, -1) if text[i : i + 2] == text[-2:])
    start = next(found, len(text))
    return text[start : start + max(0, most)]


def _params(wanted: Wanted, unified: bool, swa_full: bool) -> Any:
    params, chunk = llama.llama_context_default_params(), wanted.chunk or CHUNK
    params.n_ctx, params.n_batch, params.n_ubatch = wanted.block * wanted.blocks or CELLS, 2 * chunk, chunk
    params.n_seq_max, params.kv_unified, params.swa_full = wanted.sequences or SEQUENCES, unified, swa_full
    params.n_threads = params.n_threads_batch = 1
    params.type_k = params.type_v = TYPES[wanted.rows or wanted.dtype]
    params.flash_attn_type = int((wanted.rows or wanted.dtype) != "f32")
    return params


def driver(wanted: Wanted, unified: bool = True, swa_full: bool = False) -> Stepped:
    """Start llama.cpp. Raises BadInput for what it does not have."""
    wanted.only("block", "blocks", "chunk", "drafts", "sequences", "rows")
    if (wanted.rows or wanted.dtype) not in TYPES:
        raise BadInput(f"llama.cpp has rows of {', '.join(TYPES)}; not {wanted.rows or wanted.dtype}")
    if bool(wanted.block) != bool(wanted.blocks):
        raise BadInput("llama.cpp has cells, no blocks: declare both, block=64,blocks=4 for 256 cells")
    made = Stepped(lambda: Engine(wanted, unified, swa_full), Declared("llama.cpp"))
    cells = llama.llama_n_ctx(made.engine.context)
    if wanted.block and cells != wanted.block * wanted.blocks:
        raise BadInput(f"llama.cpp makes {cells} cells; block times blocks must be a multiple of 256")
    sizes = {**wanted.sizes(), "chunk": wanted.chunk or CHUNK, "sequences": len(made.engine.slots)}
    made.declared = Declared(
        "llama.cpp",
        f"llama-cpp-python {llama.__version__}",
        f"n_ctx={cells} kv_unified={unified} swa_full={swa_full} rows={wanted.rows or wanted.dtype}",
        can=frozenset({"reuse", "concurrent", "cancel", "cached", "reset"}),
        **{**sizes, "longest": made.engine.longest},
    )
    return made


def streams(wanted: Wanted) -> Stepped:
    """The same, with cells of its own for each sequence."""
    return driver(wanted, unified=False)


def swa_full(wanted: Wanted) -> Stepped:
    """The same, with as many cells for layers with windows as for others."""
    return driver(wanted, swa_full=True)
