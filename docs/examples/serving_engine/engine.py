"""The engine: requests go in, a step computes a batch, finished outputs come out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from serving_engine import limits
from serving_engine.blocks import Floats
from serving_engine.model import Model
from serving_engine.scheduler import Scheduler, Work
from serving_engine.sequence import Output, Request, Sequence, Settings
from serving_engine.speculation import Speculation
from serving_engine.tables import Tables


class Engine:
    """Serves many requests at once. All work is done in `step`; between steps, requests are added and aborted."""

    def __init__(self, model: Model, settings: Settings) -> None:
        limits.check_settings(settings)
        self.model, self.settings = model, settings
        elements = model.config.kv_heads * model.config.head_dim
        self.rows = limits.FORMS[settings.rows](model.groups(), settings.blocks, settings.block_size, elements)
        self.tables = Tables(settings, self.rows)
        self.counts_of: Counter[str] = self.tables.counts
        self.speculation = Speculation(settings.drafts, self.counts_of)
        self.scheduler = Scheduler(settings, self.tables, self.speculation)
        self.flight: list[tuple[Sequence, Work, Floats]] = []
        """What was computed and has no tokens yet: sequences, and the logits of what was computed of them."""

    def add(
        self,
        tokens: list[int],
        new: int = 1,
        *,
        samples: int = 1,
        salt: str = "",
        bias: Mapping[int, float] | None = None,
        logprobs: int | None = None,
        stop: int | None = None,
        adapter: str = "",
        vectors: Mapping[int, Floats] | None = None,
    ) -> int:
        """Take a request for at most `new` tokens behind a prompt, each the likeliest one, and give its id. `bias`
        is added to logits. Blocks are shared by requests of one `salt`. Of the logprobs, all are given, or the
        `logprobs` highest and minus infinity for the others. The token `stop` ends a text. An `adapter` changes the
        network. At the places of `vectors`, these stand for embeddings, whatever the ids are. Raises ValueError for
        what can never be served."""
        number, given = self.counts_of["requests"], dict(vectors or {})
        request = Request(
            number, tuple(tokens), new, samples, salt, dict(bias or {}), logprobs, stop, adapter, given
        )
        limits.check_request(request, self.settings, self.model.vocabulary, self.rows.groups)
        limits.check_adapter(adapter, self.model.adapters)
        limits.check_vectors(request, self.model.tensors["model.embed_tokens.weight"].shape[1:])
        self.counts_of["requests"] += 1
        self.scheduler.waiting.append(Sequence(request, list(tokens), [], waiting_samples=samples))
        return number

    def step(self) -> list[Output]:
        """Compute one batch, and give the outputs that it finished. If it was decided ahead, give those of the
        batch before: then nothing more is computed of sequences that have ended with them."""
        works = self.scheduler.schedule()
        outputs = self.results()
        self.compute([work for work in works if not work.sequence.finished])
        return outputs if self.settings.ahead else self.results()

    def compute(self, works: list[Work]) -> None:
        """Compute a batch."""
        logits = self.model.forward([work.piece() for work in works], self.rows) if works else []
        self.flight = [
            (sample, work, part) for work, part in zip(works, logits, strict=True) for sample in self.advance(work)
        ]

    def results(self) -> list[Output]:
        """Choose the tokens of what was computed, unless it was aborted since, and give what is finished."""
        flight, self.flight = self.flight, []
        there = [part for part in flight if part[0] in self.scheduler.all()]
        return [output for sample, work, logits in there for output in self.choose(sample, work, logits)]

    def advance(self, work: Work) -> list[Sequence]:
        """Note what was computed of a sequence. Give its samples, if they get tokens now."""
        sequence = work.sequence
        if not work.complete:
            sequence.computed += work.count
            self.tables.commit(sequence)
            return []
        samples = [sequence, *self.fork(sequence)]
        sequence.waiting_samples = 1
        for sample in samples if self.settings.ahead else ():
            sample.await_token()
        return samples

    def fork(self, sequence: Sequence) -> list[Sequence]:
        """Begin the other samples of a request, as its prompt is computed."""
        others = [self.tables.fork(sequence, sample) for sample in range(1, sequence.waiting_samples)]
        for other in others:
            other.waiting_samples = 1
        at = self.scheduler.running.index(sequence) + 1
        self.scheduler.running[at:at] = others
        return others

    def choose(self, sequence: Sequence, work: Work, logits: Floats) -> list[Output]:
        """Choose the next tokens of a sequence; rows of wrong drafts do not count as computed. A sequence that was
        preempted meanwhile has no rows."""
        sequence.tokens = sequence.known
        for token in self.speculation.verified(work.drafts, self.likeliest(sequence, logits)):
            sequence.tokens.append(token)
            if sequence.finished:
                break
        if sequence in self.scheduler.running:
            sequence.computed = len(sequence.tokens) - 1
            self.tables.commit(sequence)
        if not sequence.finished:
            return []
        self.scheduler.remove(sequence)
        return [sequence.output()]

    def likeliest(self, sequence: Sequence, logits: Floats) -> Iterator[int]:
        """Choose a token for each row of logits, and keep its logprobs. The first token of sample s is the s-th
        likeliest."""
        for row in logits:
            biased = row.astype(np.float64)
            for token, more in sequence.request.bias.items():
                biased[token] += more
            rank = 0 if sequence.chosen else sequence.sample
            sequence.logprobs.append(logprobs(row, sequence.request.logprobs))
            yield int(np.argsort(-biased, kind="stable")[rank])

    def abort(self, id: int) -> None:
        """Let a request go, wherever it is; it gives no output. Raises KeyError if none of this id is there."""
        found = [sequence for sequence in self.scheduler.all() if sequence.request.id == id]
        if not found:
            raise KeyError(f"no request {id} is running or waiting")
        for sequence in found:
            self.scheduler.remove(sequence)
        self.counts_of["aborted"] += 1

    def busy(self) -> bool:
        """Say whether there is anything to compute."""
        return bool(self.scheduler.all())

    def counts(self) -> dict[str, int]:
        """Count what has happened so far."""
        return {name: self.counts_of[name] for name in COUNTED}


COUNTED = (
    *("requests", "aborted", "cached tokens", "evictions", "preemptions"),
    *("drafts accepted", "drafts rejected", "copies", "loads"),
)
"""What is counted: requests, and those aborted; tokens found in the prefix cache; blocks that could be found and
were taken for others. Also sequences preempted, tokens speculated, blocks copied as they were written to, blocks
loaded from the host."""


def logprobs(logits: Floats, most: int | None) -> Floats:
    """Give the logprobs of logits, [vocabulary]; minus infinity for all but the `most` highest."""
    x = logits.astype(np.float64) - logits.max()
    found: Floats = (x - np.log(np.exp(x).sum())).astype(np.float32)
    if most is not None:
        found[np.argsort(-found, kind="stable")[most:]] = -np.inf
    return found


def load(folder: str | Path, settings: Settings) -> Engine:
    """Load a checkpoint."""
    return Engine(Model(Path(folder)), settings)
