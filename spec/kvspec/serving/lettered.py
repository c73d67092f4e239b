"""What a worked example must say: the tokens of each request as letters, and what the last query of its answer
sees.

A new token is the next letter, and a mark is for the token that follows: `a` is followed by `a'`. Where several
samples are asked for, each begins with another new token and goes on with the first one's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvspec.serving.clauses import Example
from kvspec.serving.history import Part, Step
from kvspec.serving.texts import Texts

MARKS = 100
"""Ids of a letter: the letter, and those that follow it one after another."""


class Letters(Texts):
    """Tokens in the order of the alphabet."""

    def __init__(self) -> None:
        super().__init__(26 * MARKS)
        self._letters = iter(range(26))

    def others(self, prompt: Sequence[int], count: int) -> list[int]:
        """Give the next letters."""
        return [next(self._letters) * MARKS for _ in range(count)]

    def _drawn(self, part: Part, prompt: list[int], ahead: int) -> list[int]:
        if part.up:
            first = next(self._letters) * MARKS
            return list(range(first, first + part.count))
        return self.others(prompt, part.count)


def lettered(example: Example) -> Iterator[tuple[str, str]]:
    """Give the cells `tokens` and `sees` of each row."""
    texts, steps, answers = Letters(), dict[str, Step](), dict[str, list[list[int]]]()
    for step in example.history:
        if step.begins:
            steps[step.name] = step
            prompt = texts.begin(step)
            answers[step.name] = _answers(texts, prompt, step)
            said = _words(prompt)
        if step.do == "ask" or (step.do == "wait" and step.name):
            name = step.name
            said = _words(texts.of[name]) + " > " + ", ".join(map(_words, answers[name]))
            seen = [_seen([*texts.of[name], *answer[:-1]], example.window) for answer in answers[name]]
            texts.answered(name, answers[name][0])
            yield said, ", ".join(map(_words, seen))
        else:
            yield (said if step.begins else ""), ""


def _answers(texts: Letters, prompt: Sequence[int], step: Step) -> list[list[int]]:
    if step.samples > 1:
        likely = texts.others(prompt, step.samples)
        return [[first, *likely[:1] * (step.new - 1)] for first in likely]
    answer = [*prompt[-1:]]
    for _ in range(step.new):
        answer.append(texts.after(answer[-1]))
    return [answer[1:]]


def _seen(text: Sequence[int], window: int) -> Sequence[int]:
    return text[-window:] if window else text


def _words(tokens: Sequence[int]) -> str:
    return " ".join(chr(97 + t // MARKS) + "'" * (t % MARKS) for t in tokens)
