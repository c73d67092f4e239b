"""The tokens of requests: what the parts of a prompt stand for.

A new token is drawn, such that no token of the prompt is drawn twice while there are others. A new prompt begins as
none of the last ones did: what begins alike may be reused. Each token is *followed* by another one, which is what
an engine answers: a probe counts, so t7 is followed by t8."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from kvspec.errors import BadInput
from kvspec.serving.history import MOST_TOKENS, Part, Step


class Texts:
    """The texts of the requests of a history, by name. `ids` is how many tokens there are: 0 to ids - 1."""

    def __init__(self, ids: int, seed: int = 0) -> None:
        self.ids, self.of = ids, dict[str, list[int]]()
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Draw from now on what a seed says, whatever was drawn before."""
        self._random, self._unused = random.Random(seed), list(range(self.ids))
        self._random.shuffle(self._unused)
        self._begun = deque[int](maxlen=self.ids // 2)

    def after(self, token: int) -> int:
        """Give the token that follows one."""
        return (token + 1) % self.ids

    def begin(self, step: Step) -> tuple[int, ...]:
        """Give the prompt of a request, which begins. Raises BadInput if it is empty or too long."""
        prompt = self.of[step.name] = []
        for number, part in enumerate(step.parts, 1):
            ahead = step.new if number == len(step.parts) else 1
            prompt += self._sliced(part) if part.source else self._drawn(part, prompt, ahead)
            if len(prompt) > MOST_TOKENS:
                raise BadInput(f"'{step}': a prompt of more than {MOST_TOKENS} tokens")
        if not prompt:
            raise BadInput(f"'{step}': this prompt is empty")
        return tuple(prompt)

    def answered(self, name: str, tokens: Sequence[int]) -> None:
        """Put an answer behind a request's prompt."""
        self.of[name] += tokens

    def others(self, prompt: Sequence[int], count: int) -> list[int]:
        """Draw tokens that a prompt does not have, and that do not follow its last one."""
        return [self._take(1, prompt)[0] for _ in range(count)]

    def _sliced(self, part: Part) -> list[int]:
        return self.of[part.source][part.start : part.stop]

    def _drawn(self, part: Part, prompt: list[int], ahead: int) -> list[int]:
        """Draw tokens that the prompt does not have and that do not follow its last one. Tokens that were not used
        for longest come first. The last one is drawn first: its next `ahead` ones stand nowhere before it, so that
        no draft is right or wrong by chance. If there is none, draw any."""
        if part.up:
            return self._take(part.count, prompt, begins=not prompt)
        last = self._take(1, prompt, ahead, begins=not prompt and part.count == 1)[0]
        run, drawn = {(last + i) % self.ids for i in range(-1, ahead + 1)}, list[int]()
        for _ in range(part.count - 1):
            drawn += self._take(1, [*prompt, *drawn], avoid=run, begins=not (prompt or drawn))
        return [*drawn, last]

    def _take(
        self,
        count: int,
        prompt: Sequence[int],
        ahead: int = 0,
        avoid: AbstractSet[int] = frozenset(),
        begins: bool = False,
    ) -> list[int]:
        """Draw a run of tokens, begun by one of those that were not used for longest."""
        known = {*prompt, *(self.after(t) for t in prompt[-1:]), *avoid}
        meets = {(t - i) % self.ids for t in known for i in range(count + ahead)}
        fitting = [t for t in self._unused if t not in meets]
        fitting = fitting or [t for t in self._unused if t not in known] or self._unused
        if begins:
            fitting = [t for t in fitting if t not in self._begun] or fitting
        first = self._random.choice(fitting[: len(fitting) // 2 + 1])
        self._begun.extend([first] * begins)
        run = [(first + i) % self.ids for i in range(count)]
        gone = set(run)
        self._unused = [t for t in self._unused if t not in gone] + list(dict.fromkeys(run))
        return run
