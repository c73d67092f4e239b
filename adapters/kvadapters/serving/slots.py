"""A small server of slots, for a library that has a memory of sequences and no server, such as llama.cpp: it is an
engine for `Stepped`.

A slot has a sequence of its own. A request takes the free slot that was idle longest, and the rows that it shares
with any slot. Where a batch finds no room, an idle slot is emptied, then the newest request goes back to those that
wait. Drafts are what followed the last two tokens earlier in the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from kvadapters.serving.driver import shared
from kvspec.geometry import Array


@dataclass(eq=False)
class Task:
    """A request on its way; as an output, its answer. `text` is its prompt and the answer so far."""

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
    """A sequence: the tokens whose rows it has, the request that it computes, and the last step in which it
    computed one."""

    number: int
    held: list[int] = field(default_factory=list)
    task: Task | None = None
    used: int = 0

    def shared(self, text: Sequence[int]) -> int:
        """Count the tokens with which a text begins as this sequence does, but for the text's last one."""
        return min(shared(self.held, text), len(text) - 1)


@dataclass
class Piece:
    """Tokens of a slot that go into a batch; the last `outputs` of them give logits."""

    slot: Slot
    task: Task
    tokens: list[int]
    outputs: int


class Memory(Protocol):
    """What a library gives. `most` tokens are in a batch, `longest` in a sequence. `copies` says whether rows of a
    sequence can be copied to another one."""

    most: int
    longest: int
    copies: bool

    def keep(self, sequence: int, count: int) -> int:
        """Remove rows behind the first `count`; where rows that later queries need are gone, remove all. Give how
        many are there."""

    def copy(self, source: int, sequence: int, count: int) -> None:
        """Give an empty sequence the first `count` rows of another one, at least."""

    def decode(self, pieces: Sequence[Piece]) -> list[Array] | None:
        """Compute a batch; give the logits in its order, or None if there is no room for it."""


class Slots:
    """Serves requests with a memory of `sequences`. Up to `drafts` tokens are guessed at once."""

    def __init__(self, memory: Memory, sequences: int, drafts: int) -> None:
        self.memory, self.drafts, self.slots = memory, drafts, [Slot(i) for i in range(sequences)]
        self.waiting, self.added, self.steps, self.counted = list[Task](), 0, 0, Counter[str]()

    def add(self, tokens: list[int], new: int, *, samples: int, salt: str, bias: Mapping[int, float]) -> int:
        """Take a request. Raises ValueError if it does not fit."""
        if len(tokens) + new > self.memory.longest:
            raise ValueError(f"{len(tokens)} tokens and {new} new ones; a sequence has {self.memory.longest} cells")
        self.added += 1
        self.waiting.append(Task(self.added, list(tokens), new, len(tokens)))
        return self.added

    def abort(self, number: int) -> None:
        """Let a request go; its rows stay in its slot."""
        self.waiting = [task for task in self.waiting if task.id != number]
        for slot in self.slots:
            if slot.task and slot.task.id == number:
                slot.task = None

    def counts(self) -> Mapping[str, int]:
        """Give what happened so far, by `COUNTED`."""
        return {name: self.counted[name] for name in ("cached tokens", "evictions", "preemptions", *_DRAFTS)}

    def step(self) -> list[Task]:
        """Compute one batch; give the requests that it finished. Raises RuntimeError if one has no room alone."""
        self.steps += 1
        self._assign()
        while pieces := self._pieces():
            logits = self.memory.decode(pieces)
            if logits is not None:
                return [task for piece in pieces if (task := self._advance(piece, logits))]
            self._make_room()
        return []

    def _assign(self) -> None:
        while self.waiting and (free := [slot for slot in self.slots if not slot.task]):
            task, slot = self.waiting.pop(0), min(free, key=lambda s: s.used)
            source = max(self.slots if self.memory.copies else free, key=lambda s: s.shared(task.text))
            slot = slot if self.memory.copies or not source.shared(task.text) else source
            count = source.shared(task.text)
            if source is not slot:
                self._keep(slot, 0)
            if source is not slot and count:
                self.memory.copy(source.number, slot.number, count)
                slot.held = list(source.held)
            self._keep(slot, count)
            slot.task = task
            if task.reused < 0:
                task.reused = len(slot.held)
                self.counted["cached tokens"] += task.reused

    def _keep(self, slot: Slot, count: int) -> None:
        del slot.held[self.memory.keep(slot.number, count) :]

    def _pieces(self) -> list[Piece]:
        """Choose what is computed: those first of which least is left."""
        room, found = self.memory.most, list[Piece]()
        busy = [(slot, slot.task) for slot in self.slots if slot.task]
        for slot, task in sorted(busy, key=lambda each: len(each[1].text) - len(each[0].held)):
            done = len(slot.held)
            tokens, drafts = task.text[done : done + room], list[int]()
            outputs = int(bool(tokens) and done + len(tokens) == len(task.text))
            if outputs:
                drafts = _drafted(task.text, min(self.drafts, task.new - len(task.tokens) - 1, room - len(tokens)))
            found += [Piece(slot, task, tokens + drafts, outputs + len(drafts))] if tokens else []
            room -= len(tokens) + len(drafts)
        return found

    def _make_room(self) -> None:
        """Empty the slot that was idle longest, or send the newest of several requests back."""
        idle = [slot for slot in self.slots if slot.held and not slot.task]
        busy = [(slot, slot.task) for slot in self.slots if slot.task]
        if not idle and len(busy) == 1:
            raise RuntimeError("there is no room for a request alone")
        slot = min(idle, key=lambda s: s.used) if idle else max(busy, key=lambda each: each[1].id)[0]
        self.counted["evictions" if idle else "preemptions"] += 1
        self.waiting[:0] = [slot.task] if slot.task else []
        slot.task = None
        self._keep(slot, 0)

    def _advance(self, piece: Piece, logits: list[Array]) -> Task | None:
        """Read a piece's logits, accept drafts that are the likeliest, and take the others out of the memory."""
        slot, task, drafts = piece.slot, piece.task, piece.tokens[len(piece.tokens) - piece.outputs + 1 :]
        slot.used = self.steps
        slot.held += piece.tokens
        if not piece.outputs:
            return None
        mine = [logits.pop(0) for _ in range(piece.outputs)]
        chosen = [int(each.argmax()) for each in mine]
        right = next((i for i, token in enumerate(drafts) if token != chosen[i]), len(drafts))
        task.text += chosen[: right + 1]
        task.logits += mine[: right + 1]
        self.counted.update(dict(zip(_DRAFTS, (right, len(drafts) - right), strict=True)))
        if right < len(drafts):
            self._keep(slot, len(task.text) - 1)
        if len(task.tokens) < task.new:
            return None
        slot.task = None
        return task


_DRAFTS = ("drafts accepted", "drafts rejected")


def _drafted(text: list[int], most: int) -> list[int]:
    found = (i + 2 for i in range(len(text) - 3, -1, -1) if text[i : i + 2] == text[-2:])
    start = next(found, len(text))
    return text[start : start + max(0, most)]
