"""Judges answers: each query must see what its layer's rule shows of the request's own tokens, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from kvadapters.probe.checkpoint import Probe
from kvadapters.probe.reader.precision import Precision
from kvadapters.probe.reader.queries import read
from kvadapters.probe.reader.reading import Finding, Reading
from kvadapters.probe.reader.tokens import TokenJudgement, read_tokens
from kvadapters.serving.driver import Request, Sample, shared
from kvconform.serving.player import Asked
from kvspec.errors import BadInput

Shares = tuple[str, str]
"""What requests must have alike to share rows: a salt and an adapter."""

MOST = 6
"""Findings of one sample that are kept."""

CLOSE = 1.0
"""Logits that are no further apart are not told apart, where a token is compared with the likeliest one."""

LUCK = 8
"""Tokens of requests that have nothing to do with each other, which are the same by chance, are fewer."""

ALONE = "what queries see: the engine gives tokens alone; write the probe with --output tokens"
"""What is not told of an engine whose answers have no logprobs."""

SAMPLES_ALONE = "samples of engines that give tokens alone"
"""What is not told of samples that were drawn by chance."""

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def ordinal(number: int) -> str:
    """Name the n-th from 0."""
    return ORDINALS[number] if number < len(ORDINALS) else f"{number + 1}th"


@dataclass(frozen=True)
class Wrong:
    """One thing that is wrong with the answer of a request: its sort, where, and a line of words."""

    request: int
    sort: str
    words: str
    layer: int | None = None
    query: int | None = None
    tokens: TokenJudgement | None = field(default=None, repr=False, compare=False)

    def explained(self) -> Wrong:
        """Add what would explain a token that a correct engine would not have chosen. To look for it costs much
        more than to judge."""
        explanations = self.tokens.explanations[:1] if self.tokens else ()
        return replace(self, words="; ".join([self.words, *explanations]), tokens=None)


class Judge:
    """Judges the answers of a history. `untold` counts what answers could not tell. `ranks` says that samples begin
    with the likeliest tokens in their order."""

    def __init__(self, probe: Probe, precision: Precision, ranks: bool = False) -> None:
        self.probe, self.precision, self.ranks = probe, precision, ranks
        self.untold = Counter[str]()
        self.queries = 0
        self.past = list[tuple[Shares, list[int]]]()
        """Salts, adapters and texts that the engine may have rows of."""
        self.with_adapter = cache(probe.with_adapter)

    def judged(self, asked: Sequence[Asked]) -> list[Wrong]:
        """Give what is wrong, in the order of the requests."""
        found = [wrong for one in asked for wrong in self._request(one, asked)]
        self.past += [(o.request.shares, text) for o in asked for text in o.texts]
        return found

    def _request(self, one: Asked, asked: Sequence[Asked]) -> Iterator[Wrong]:
        if one.outcome == "failed":
            yield Wrong(
                one.number, "failed", f"the engine failed at the {ordinal(one.number)} request: {one.failed}"
            )
        if one.answer is None:
            return
        if len(one.answer.samples) != one.request.samples:
            words = f"{len(one.answer.samples)} samples; {one.request.samples} were asked for"
            yield Wrong(one.number, "answer", words)
        yield from _cached(one, asked, self.past)
        for rank, sample in enumerate(one.answer.samples):
            yield from list(self._sample(one, sample, rank, asked))[:MOST]

    def _sample(self, one: Asked, sample: Sample, rank: int, asked: Sequence[Asked]) -> Iterator[Wrong]:
        if len(sample.tokens) != (right := _length(one.request, sample.tokens)):
            until = f" at most, until t{one.request.stop}" if one.request.stop is not None else ""
            words = (
                f"answered with {len(sample.tokens)} tokens, not {right}; {one.request.new} were asked for{until}"
            )
            yield Wrong(one.number, "answer", f"the {ordinal(one.number)} request is {words}")
        if strange := [t for t in sample.tokens if not 0 <= t < self.probe.layout.ids]:
            words = f"the answer of the {ordinal(one.number)} request has id {strange[0]}, which follows no token"
            yield Wrong(one.number, "token", words)
        elif sample.tokens and self.probe.output == "tokens":
            yield from self._tokens(one, sample)
        elif sample.tokens:
            yield from self._chosen(one, sample)
            yield from self._ranked(one, sample, rank) if self.ranks else ()
            yield from self._read(one, sample, asked)

    def _tokens(self, one: Asked, sample: Sample) -> Iterator[Wrong]:
        """Judge tokens alone, by how much less likely than the best they are."""
        if one.request.bias:
            self.untold[SAMPLES_ALONE] += 1
            return
        judged = read_tokens(
            self.with_adapter(one.request.adapter), one.request.tokens, sample.tokens, self.precision
        )
        self.queries += len(sample.tokens)
        for at in judged.wrong[:1]:
            words = f"its logit is {judged.regrets[at]:.3g} below the best"
            place = f"token {at} of the answer of the {ordinal(one.number)} request"
            query = len(one.request.tokens) - 1 + at
            yield Wrong(one.number, "regret", f"{place}: {words}", None, query, judged)

    def _chosen(self, one: Asked, sample: Sample) -> Iterator[Wrong]:
        """Compare tokens with those that are likeliest: text is known beforehand."""
        before = one.request.tokens[-1]
        for at, token in enumerate(sample.tokens):
            follows = (before + 1) % self.probe.layout.ids
            if token not in (one.request.bias or {follows: 0.0}):
                words = f"token {at} of the answer of the {ordinal(one.number)} request is t{token}; t{follows}"
                yield Wrong(
                    one.number, "token", f"{words} is the likeliest", None, len(one.request.tokens) + at - 1
                )
                return
            before = token

    def _ranked(self, one: Asked, sample: Sample, rank: int) -> Iterator[Wrong]:
        """Compare a sample's tokens with its own logits and the bias: the first one is of its rank, each other one
        is the likeliest."""
        if not one.request.bias or not isinstance(sample.answers, np.ndarray):
            return
        for at, (row, token) in enumerate(zip(sample.answers, sample.tokens, strict=False)):
            biased = {t: float(row[t]) + more for t, more in one.request.bias.items()}
            first, *_ = behind = sorted(biased, key=lambda t: -biased[t])[0 if at else rank :]
            near = [t for t in behind if biased[first] - biased[t] < CLOSE]
            if token in biased and token not in near:
                words = f"token {at} of sample {rank} of the {ordinal(one.number)} request is t{token}; t{first}"
                query = len(one.request.tokens) + at - 1
                yield Wrong(one.number, "token", f"{words} is the one to choose, by its own logits", None, query)
                return

    def _read(self, one: Asked, sample: Sample, asked: Sequence[Asked]) -> Iterator[Wrong]:
        if sample.answers is None:
            self.untold[ALONE] += 1
            return
        if words := _unreadable(sample.answers, len(sample.tokens)):
            yield Wrong(one.number, "answer", f"the {ordinal(one.number)} request is answered with {words}")
            return
        try:
            text = [*one.request.tokens, *sample.tokens[:-1]]
            probe = self.with_adapter(one.request.adapter)
            judgement = read(probe, text, sample.answers, self.precision)
        except BadInput as e:
            self.untold[str(e)] += 1
            return
        self.queries += len(sample.tokens)
        self.untold.update(dict(judgement.untold))
        names = _Names(one, sample, asked)
        for reading in judgement.wrong:
            for finding in reading.findings:
                place = f"query {reading.query} of the {ordinal(one.number)} request, layer {reading.layer}"
                words = f"{place} ({reading.view}): {names.said(reading, finding)}"
                yield Wrong(one.number, finding.sort, words, reading.layer, reading.query)
        for note in judgement.notes if judgement.wrong else ():
            yield Wrong(one.number, "note", note)


def _unreadable(answers: Any, tokens: int) -> str:
    """Why nothing can be read in an answer of so many tokens; empty if it can."""
    if isinstance(answers, np.ndarray) and not np.isfinite(answers).all():
        return "logprobs that are not finite"
    return "" if len(answers) == tokens else f"{tokens} tokens and the logprobs of {len(answers)}"


class _Names:
    """Names tokens that a request's text does not have, by the request of this history that has them."""

    def __init__(self, one: Asked, sample: Sample, asked: Sequence[Asked]) -> None:
        self.one, self.asked = one, asked
        self.own = {*one.request.tokens, *sample.tokens}

    def said(self, reading: Reading, finding: Finding) -> str:
        """Say a finding in words."""
        foreign = [row.token for row in reading.rows if not row.positions]
        if finding.sort != "extra" or not foreign:
            return finding.words
        own = [f"row {p} of its own, {_back(reading.query - p)}" for p in finding.rows[:6]]
        seen = [*own, *map(self._where, foreign[:8])]
        more = len(foreign) - 8
        return "sees " + ", ".join(seen) + (f" and {more} more" if more > 0 else "")

    def _where(self, token: int) -> str:
        if token in self.own:
            return f"t{token} of its own answer"
        for other in sorted(self.asked, key=lambda o: abs(o.number - self.one.number)):
            for number, text in enumerate(other.texts):
                if token in text:
                    sample = f", sample {number}" if number else ""
                    return f"token {text.index(token)} of the {ordinal(other.number)}{sample}"
        return f"t{token}, which no request of this history has"


def _back(distance: int) -> str:
    return f"{distance} back" if distance > 0 else f"{-distance} ahead" if distance else "the query itself"


def _length(request: Request, tokens: Sequence[int]) -> int:
    """Count the tokens that an answer must have: as many as were asked for, or until the one that ends it."""
    ends = [at for at, token in enumerate(tokens[: request.new], 1) if token == request.stop]
    return ends[0] if ends else request.new


def _cached(one: Asked, asked: Sequence[Asked], past: Sequence[tuple[Shares, list[int]]]) -> Iterator[Wrong]:
    """Compare what an engine says that it did not compute with what it may reuse: of this history, or of the texts
    before it."""
    assert one.answer is not None
    cached, size = one.answer.cached, len(one.request.tokens)
    if cached is None:
        return
    if not 0 <= cached < size:
        words = f"the {ordinal(one.number)} request of {size} tokens was answered with {cached} of them reused"
        yield Wrong(one.number, "computed", f"{words}; at least one is computed")
        return
    if one.request.samples > 1:
        return  # each sample may reuse rows of the others
    if not (one.alone and one.step.do == "ask") or cached < LUCK:
        return
    before = [(o.request.shares, text) for o in asked if o.number < one.number for text in o.texts]
    mine = (text for shares, text in (*before, *past) if shares == one.request.shares)
    most = max((shared(text, one.request.tokens) for text in mine), default=0)
    if cached >= most + LUCK:
        of = "salt and adapter" if one.request.adapter else "salt"
        words = f"the {ordinal(one.number)} request reused {cached} tokens, though no request of its {of} before it"
        yield Wrong(one.number, "reused", f"{words} begins with more than {most} of them")
