"""Chooses what each step computes: the sequences that run, then those that wait, as far as budget and blocks go."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from serving_engine.model import Piece
from serving_engine.sequence import Sequence, Settings
from serving_engine.speculation import Speculation
from serving_engine.tables import Tables


@dataclass
class Work:
    """The part of a sequence that a step computes: `count` of its tokens, and `drafts` behind them."""

    sequence: Sequence
    count: int
    drafts: list[int]

    @property
    def end(self) -> int:
        """The position behind the last row that is written."""
        return self.sequence.computed + self.count + len(self.drafts)

    @property
    def complete(self) -> bool:
        """Whether the last token is among them, so that the next one can be chosen."""
        return self.sequence.computed + self.count == len(self.sequence.tokens)

    def piece(self) -> Piece:
        """Give what the network computes."""
        start = self.sequence.computed
        tokens = [*self.sequence.tokens[start : start + self.count], *self.drafts]
        answers = 1 + len(self.drafts) if self.complete else 0
        adapter = self.sequence.request.adapter
        vectors = self.sequence.request.vectors
        return Piece(tokens, start, self.sequence.tables, answers, adapter, vectors)


class Scheduler:
    """Sequences in the order in which they came. Those that run have blocks, those that wait have none."""

    def __init__(self, settings: Settings, tables: Tables, speculation: Speculation) -> None:
        self.settings, self.tables, self.speculation = settings, tables, speculation
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []

    def schedule(self) -> list[Work]:
        """Give the work of one step. If blocks run out, the youngest sequence is preempted, and none begins."""
        budget, before = self.settings.budget, self.tables.counts["preemptions"]
        chosen = list[Work]()
        for sequence in list(self.running):
            going = sequence in self.running and not sequence.finished
            if budget > 0 and going and (work := self.go_on(sequence, budget)):
                chosen.append(work)
                budget -= work.count + len(work.drafts)
        while budget > 0 and self.tables.counts["preemptions"] == before and (work := self.begin(budget)):
            chosen.append(work)
            budget -= work.count + len(work.drafts)
        return chosen

    def go_on(self, sequence: Sequence, budget: int) -> Work | None:
        """Choose the next tokens of a sequence that runs; preempt the youngest until there is room for them."""
        work = self.work(sequence, budget)
        while not self.tables.reserve(sequence, work.end):
            if work.drafts:
                work.drafts = []
                continue
            youngest = self.running[-1]
            self.preempt(youngest)
            if youngest is sequence:
                return None
        return work

    def begin(self, budget: int) -> Work | None:
        """Begin the sequence that waits longest, if there is room for it."""
        if not self.waiting or self.places() + self.waiting[0].waiting_samples > self.settings.sequences:
            return None
        sequence = self.waiting[0]
        self.tables.reuse(sequence)
        work = self.work(sequence, budget)
        if not self.tables.reserve(sequence, work.end):
            self.tables.release(sequence)
            return None
        self.tables.counts["cached tokens"] += sequence.computed
        if sequence.reused is None:
            sequence.reused = sequence.computed
        self.running.append(self.waiting.popleft())
        return work

    def work(self, sequence: Sequence, budget: int) -> Work:
        """Choose a chunk of the tokens that are not computed. With the last token come drafts of what may
        follow."""
        count = min(len(sequence.tokens) - sequence.computed, self.settings.chunk, budget)
        work = Work(sequence, count, [])
        if work.complete and count == 1 and sequence.waiting_samples == 1:
            left = sequence.request.new - len(sequence.chosen)
            work.drafts = self.speculation.drafts(sequence.tokens, min(left, budget) - 1)
        return work

    def places(self) -> int:
        """Count the samples that run."""
        return sum(sequence.waiting_samples for sequence in self.running)

    def preempt(self, sequence: Sequence) -> None:
        """Take a sequence's blocks. It waits, before all others, and is computed again."""
        self.tables.release(sequence)
        self.running.remove(sequence)
        self.waiting.appendleft(sequence)
        self.tables.counts["preemptions"] += 1

    def remove(self, sequence: Sequence) -> None:
        """Let a sequence go: it has ended, or nobody wants it any more."""
        self.tables.release(sequence)
        if sequence in self.running:
            self.running.remove(sequence)
        else:
            self.waiting.remove(sequence)

    def all(self) -> list[Sequence]:
        """Give all sequences."""
        return [*self.running, *self.waiting]
