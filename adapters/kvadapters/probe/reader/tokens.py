"""Reads an engine that returns tokens alone: how much less likely than the best one is each token that it chose?

The output of such a probe answers by content ids, and each id's logit depends on everything that the query saw. A
correct engine chooses the likeliest id, or one that is as likely up to rounding. The *regret* of a choice is how
much less likely it is, in float64. Where a regret is too large, the same network tries what would explain all
tokens: another view of a layer, or one row that a layer does not see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kvadapters.probe.arrays import Float64, Mask
from kvadapters.probe.checkpoint import Probe
from kvadapters.probe.heads import AMPLITUDE, PAIRS
from kvadapters.probe.reader.common import views
from kvadapters.probe.reader.precision import Precision
from kvadapters.probe.reader.prints import bound_of
from kvspec.errors import BadInput

MOST_TOKENS = 256
"""Tokens of a text for which explanations are looked for: there are a few for each of them."""


@dataclass(frozen=True)
class TokenJudgement:
    """The tokens that an engine chose, each with its regret and with how much of it rounding explains."""

    choice: Choice = field(repr=False)
    regrets: tuple[float, ...]
    bounds: tuple[float, ...]
    spread: float
    """By how much the logits of different ids differ, as a standard deviation: a bound above it tells nothing."""

    @property
    def chosen(self) -> tuple[int, ...]:
        """The tokens."""
        return self.choice.chosen

    @property
    def wrong(self) -> list[int]:
        """The numbers of the tokens that a correct engine would not have chosen."""
        return [i for i, regret in enumerate(self.regrets) if regret > self.bounds[i]]

    @cached_property
    def explanations(self) -> tuple[str, ...]:
        """What would explain all tokens, in words; none if nothing is wrong, or nothing that was tried does. It is
        looked for when it is first asked for, and costs as much as judging hundreds of texts."""
        return tuple(self.choice.explained()) if self.wrong else ()

    def told(self) -> str:
        """Tell it in lines."""
        lines = [f"{len(self.chosen)} tokens: {len(self.wrong)} that a correct engine would not have chosen"]
        for i in self.wrong[:8]:
            lines += [
                f"token {i}, t{self.chosen[i]}: its logit is {self.regrets[i]:.3g} below the best; "
                f"rounding explains {self.bounds[i]:.1g}"
            ]
        if vague := sum(bound > self.spread for bound in self.bounds):
            lines += [f"cannot be told: {vague} tokens, as rounding alone may change which id is the likeliest"]
        if self.wrong and not self.explanations:
            lines += ["neither another view of one layer nor one row that is not seen explains all of them"]
        return "\n".join([*lines, *(f"explains all of them: {text}" for text in self.explanations)])


def read_tokens(
    probe: Probe, prompt: Sequence[int], chosen: Sequence[int], precision: Precision | None = None
) -> TokenJudgement:
    """Judge the tokens that an engine chose after a prompt, each the likeliest. Raises BadInput."""
    if probe.output != "tokens":
        raise BadInput("this probe's output is for logits: `kvconform probe --output tokens` writes one for tokens")
    if not chosen or not all(0 <= t < probe.layout.vocabulary for t in chosen):
        raise BadInput(f"chosen tokens are ids below {probe.layout.vocabulary}, at least one")
    text = probe.checked([*prompt, *chosen[:-1]])
    choice = Choice(probe, text, tuple(chosen), precision or Precision())
    logits = choice.logits(choice.states[-1])
    return TokenJudgement(choice, *choice.regrets(choice.states[-1]), float(logits[:, : probe.layout.ids].std()))


@dataclass(frozen=True)
class Choice:
    """The tokens of a text, and those that were chosen at its end."""

    probe: Probe
    text: Sequence[int]
    chosen: tuple[int, ...]
    precision: Precision

    @cached_property
    def states(self) -> list[Float64]:
        """The hidden states of the text, before each layer and behind the last one."""
        return self.probe.network.states(self.text)

    def logits(self, hidden: Float64) -> Float64:
        """Give the logits behind which the tokens were chosen, [chosen, vocabulary]."""
        return self.probe.network.logits(hidden[-len(self.chosen) :])

    def regrets(self, hidden: Float64) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Give regrets and their bounds, if the text's last hidden states were these."""
        logits, each = self.logits(hidden), np.arange(len(self.chosen))
        best = logits.argmax(-1)
        regrets = logits[each, best] - logits[each, list(self.chosen)]
        ends = hidden[-len(self.chosen) :]
        bounds = self._errors(ends, best) + self._errors(ends, np.array(self.chosen))
        return tuple(map(float, regrets)), tuple(map(float, bounds))

    def _errors(self, hidden: Float64, ids: NDArray[np.integer]) -> Float64:
        """Bound the error of one logit of each query, [queries], by those of the hidden states' dimensions."""
        layout, precision = self.probe.layout, self.precision
        scores = precision.score(AMPLITUDE, PAIRS[0][1], len(self.text))
        errors = np.abs(hidden) * precision.relative
        for at, (number, _) in enumerate(layout.blocks):
            block = layout.block(at)
            errors[:, block.seen] = np.abs(hidden[:, block.seen]) * precision.relative + precision.absolute
            for part in (block.distance, block.match):
                errors[:, part] = np.abs(hidden[:, part]) * (np.expm1(2 * scores) + precision.relative)
                errors[:, part] += precision.absolute
            if number or self.probe.adapters:  # else rows of the first layer carry no fingerprint
                errors[:, block.prints] = bound_of(self.probe, precision, number)
        norms = np.sqrt((hidden**2).mean(-1))
        found: Float64 = (errors * np.abs(self.probe.network.output[ids])).sum(-1) / norms
        return found

    def explained(self) -> Iterator[str]:
        """Give what would explain all tokens."""
        if len(self.text) > MOST_TOKENS:
            return
        for number, mask, words in self._tried():
            regrets, bounds = self.regrets(self._states(number, mask))
            if all(regret <= bound for regret, bound in zip(regrets, bounds, strict=True)):
                yield words

    def _states(self, number: int, mask: Mask) -> Float64:
        """Give the last hidden states, if a layer showed this. Those below it stay what they are."""
        at = np.arange(len(self.text))
        return self.probe.network.gone_on(self.states[: number + 1], {number: mask}, at)[-1]

    def _tried(self) -> Iterator[tuple[int, Mask, str]]:
        """Give a layer, what it would show, and this in words: other views of all layers, then single rows."""
        n = len(self.text)
        layers = list(enumerate(self.probe.layout.layers))
        for number, view in layers:
            tried = [view.sees(n)]
            for other in views(view, n):
                mask = other.sees(n)
                if not any(np.array_equal(mask, known) for known in tried):
                    tried.append(mask)
                    yield number, mask, f"layer {number} sees what a layer of {other} shows"
        for number, view in layers:
            for row in range(n - 1):
                mask = view.sees(n)
                mask[row + 1 :, row] = False
                if not np.array_equal(mask, view.sees(n)):
                    yield number, mask, f"layer {number} does not see row {row} (t{self.text[row]})"
