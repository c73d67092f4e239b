"""Judges a whole engine: tokens in, logits out, through its own cache, in many histories.

engine = from_model(open=lambda: DynamicCache(...), decode=lambda cache, tokens: logits)
print(asked(probe, engine, Precision("f32")).told())
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kvadapters.probe.checkpoint import Probe
from kvadapters.probe.histories import History, Step, histories
from kvadapters.probe.reader.precision import Precision
from kvadapters.probe.reader.queries import read
from kvadapters.probe.reader.reading import Judgement

MOST_TOKENS = 50


@dataclass(frozen=True)
class Model:
    """An engine that has loaded a probe. A cache is whatever the engine makes of it."""

    open: Callable[[], Any]
    """Make a cache that holds nothing."""
    decode: Callable[[Any, list[int]], Any]
    """Append tokens to a cache; give the logits or logprobs of each, [n, vocabulary]."""
    rewind: Callable[[Any, int], None] | None = None
    """Drop the newest n tokens. What it raises is a refusal."""
    copy: Callable[[Any], Any] | None = None
    """Copy a cache: whatever is done to one must not show in the other."""

    @property
    def abilities(self) -> frozenset[str]:
        """What it has beside appends."""
        return frozenset(name for name in ("rewind", "copy") if getattr(self, name))


def from_model(
    open: Callable[[], Any],
    decode: Callable[[Any, list[int]], Any],
    rewind: Callable[[Any, int], None] | None = None,
    copy: Callable[[Any], Any] | None = None,
) -> Model:
    """Make a model of an engine's functions."""
    return Model(open, decode, rewind, copy)


@dataclass(frozen=True)
class Failure:
    """The judgement of the last answers of a history, which are wrong."""

    history: History
    judgement: Judgement


@dataclass(frozen=True)
class Verdict:
    """What an engine was asked, and what was wrong: the failures of the shortest histories."""

    histories: int
    queries: int
    refused: int
    failures: tuple[Failure, ...]
    untold: tuple[str, ...]

    def told(self, most: int = 3) -> str:
        """Tell it in lines."""
        refused = f", {self.refused} refused a rewind" if self.refused else ""
        lines = [f"{self.histories} histories of {self.queries} queries{refused}: {len(self.failures)} wrong"]
        for failure in self.failures[:most]:
            lines += [f"after {'; '.join(map(str, failure.history))}:"]
            lines += [
                f"  {line}" for line in failure.judgement.told(4).splitlines() if not line.startswith("cannot")
            ]
        if len(self.failures) > most:
            lines += [f"{len(self.failures) - most} longer histories are wrong too"]
        return "\n".join([*lines, *(f"cannot be told: {text}" for text in self.untold)])


def asked(
    probe: Probe, model: Model, precision: Precision | None = None, seed: int = 0, most: int = MOST_TOKENS
) -> Verdict:
    """Ask an engine in many histories, the shortest first. Each has at most `most` tokens, which `seed` draws."""
    found = histories(probe.layout.layers, min(most, probe.layout.ids), model.abilities)
    lives = [
        _Life(probe, model, precision or Precision(), seed + i).lived(history) for i, history in enumerate(found)
    ]
    failures = [
        Failure(history[: life.steps], life.judgements[-1])
        for history, life in zip(found, lives, strict=True)
        if life.judgements and life.judgements[-1].wrong
    ]
    read_all = [judgement for life in lives for judgement in life.judgements]
    untold = dict.fromkeys(text for judgement in read_all for text in (*judgement.untold, *judgement.lost))
    queries = sum(len({r.query for r in judgement.readings}) for judgement in read_all)
    return Verdict(len(found), queries, sum(life.refused for life in lives), tuple(failures), tuple(untold))


class _Life:
    """One history of a cache. All tokens of a text differ; a dropped token comes again only when all were used."""

    def __init__(self, probe: Probe, model: Model, precision: Precision, seed: int) -> None:
        self.probe, self.model, self.precision = probe, model, precision
        self.fresh = [int(t) for t in np.random.default_rng(seed).permutation(probe.layout.ids)]
        self.cache, self.text = model.open(), list[int]()
        self.judgements, self.refused, self.steps = list[Judgement](), False, 0

    def lived(self, history: Sequence[Step]) -> _Life:
        """Perform steps until answers are wrong, or a rewind is refused."""
        for step in history:
            getattr(self, f"_{step.what}")(step.tokens)
            self.steps += 1
            if self.refused or (self.judgements and self.judgements[-1].wrong):
                break
        return self

    def _append(self, tokens: int) -> None:
        self.text += self._drawn(tokens)
        self._judge(self.cache, self.text, tokens)

    def _rewind(self, tokens: int) -> None:
        assert self.model.rewind is not None
        try:
            self.model.rewind(self.cache, tokens)
        except Exception:  # whatever an engine raises is its refusal
            self.refused = True
        del self.text[-tokens:]

    def _copy(self, tokens: int) -> None:
        assert self.model.copy is not None
        self._judge(self.model.copy(self.cache), [*self.text, *self._drawn(tokens)], tokens)

    def _drawn(self, tokens: int) -> list[int]:
        """Draw tokens that the text does not have; used ones come again when all were used."""
        drawn = [t for t in self.fresh if t not in self.text][:tokens]
        self.fresh = [t for t in self.fresh if t not in drawn] + drawn
        return drawn

    def _judge(self, cache: Any, text: list[int], new: int) -> None:
        answers = np.asarray(self.model.decode(cache, text[-new:]))
        self.judgements.append(read(self.probe, text, answers, self.precision))
