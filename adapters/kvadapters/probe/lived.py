"""Lives of an engine's caches: what is done to them, and what their answers say. All tokens of a text differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kvadapters.probe.checkpoint import Probe
from kvadapters.probe.histories import Step
from kvadapters.probe.lives import Act
from kvadapters.probe.model import Model
from kvadapters.probe.reader.precision import Precision
from kvadapters.probe.reader.queries import read
from kvadapters.probe.reader.reading import Judgement


class Life:
    """One history of a cache. A dropped token comes again only when all were used."""

    def __init__(self, probe: Probe, model: Model, precision: Precision, seed: int) -> None:
        self.probe, self.model, self.precision = probe, model, precision
        self.fresh = [int(t) for t in np.random.default_rng(seed).permutation(probe.layout.ids)]
        self.cache, self.text = model.open(), list[int]()
        self.judgements, self.refused, self.steps = list[Judgement](), False, 0

    def lived(self, history: Sequence[Step]) -> Life:
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


@dataclass
class Text:
    """A sequence of a life: its cache, and the tokens that it has. If it was `shifted`, its rows were computed in
    another context than these."""

    cache: Any
    tokens: list[int]
    shifted: bool = False


class Lived:
    """A life of several sequences, whose tokens are all different as far as there are enough."""

    def __init__(self, probe: Probe, model: Model, precision: Precision, seed: int) -> None:
        self.probe, self.model, self.precision = probe, model, precision
        self.draw, self.texts = np.random.default_rng(seed), dict[str, Text]()
        self.judgements, self.refused = list[Judgement](), False

    @property
    def wrong(self) -> bool:
        """Whether the last answers are wrong."""
        return bool(self.judgements and self.judgements[-1].wrong)

    def through(self, acts: Sequence[Act]) -> Lived:
        """Perform acts until answers are wrong, or a rewind or a shift is refused."""
        for act in acts:
            getattr(self, f"_{act.what}")(*act.of, *act.tokens)
            if self.refused or self.wrong:
                break
        return self

    def _append(self, *given: Any) -> None:
        names, counts = given[: len(given) // 2], given[len(given) // 2 :]
        for name in names:
            if name not in self.texts:
                self.texts[name] = Text(self._empty(), [])
        new = [self._drawn(names, name, n) for name, n in zip(names, counts, strict=True)]
        texts = [self.texts[name] for name in names]
        answers = self._answers([text.cache for text in texts], new)
        for text, tokens, answer in zip(texts, new, answers, strict=True):
            text.tokens += tokens
            if not self.wrong:
                self.judgements.append(self._judged(text, np.asarray(answer)))

    def _empty(self) -> Any:
        if not self.texts:
            return self.model.open()
        assert self.model.beside is not None
        return self.model.beside(next(iter(self.texts.values())).cache)

    def _answers(self, caches: list[Any], new: list[list[int]]) -> Sequence[Any]:
        if len(new) == 1:
            return [self.model.decode(caches[0], new[0])]
        assert self.model.batch is not None
        return self.model.batch(caches, new)

    def _drawn(self, names: Sequence[str], name: str, n: int) -> list[int]:
        """Draw tokens that no text has, or that this one has not."""
        everyone = {t for text in self.texts.values() for t in text.tokens}
        order = [int(t) for t in self.draw.permutation(self.probe.layout.ids)]
        order.sort(key=lambda t: t in everyone)
        return [t for t in order if t not in self.texts[name].tokens][:n]

    def _judged(self, text: Text, answers: Any) -> Judgement:
        """Read answers. Behind a shift fingerprints are those of the text that there was."""
        found = read(self.probe, text.tokens, answers, self.precision)
        if not text.shifted:
            return found
        readings = (
            replace(r, findings=tuple(f for f in r.findings if f.sort != "context")) for r in found.readings
        )
        return replace(found, readings=tuple(readings), notes=())

    def _copy(self, name: str, other: str) -> None:
        assert self.model.copy is not None
        self._another(name, other, self.model.copy)

    def _load(self, name: str, other: str) -> None:
        assert self.model.load is not None
        self._another(name, other, self.model.load)

    def _another(self, name: str, other: str, made: Any) -> None:
        text = self.texts[name]
        self.texts[other] = Text(made(text.cache), [*text.tokens], text.shifted)

    def _rewind(self, name: str, n: int) -> None:
        self._or_refused(self.model.rewind, name, n)
        del self.texts[name].tokens[-n:]

    def _shift(self, name: str, n: int) -> None:
        self._or_refused(self.model.shift, name, n)
        del self.texts[name].tokens[:n]
        self.texts[name].shifted = True

    def _or_refused(self, function: Any, name: str, n: int) -> None:
        try:
            function(self.texts[name].cache, n)
        except Exception:  # whatever an engine raises is its refusal
            self.refused = True

    def _drop(self, name: str) -> None:
        assert self.model.drop is not None
        self.model.drop(self.texts.pop(name).cache)
