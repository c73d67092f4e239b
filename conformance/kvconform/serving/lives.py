"""Random histories of requests: shared beginnings, company, cancels, samples, drafts, all at once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from kvadapters.probe.lora import ADAPTERS
from kvconform.serving.recipes import Aim
from kvspec.serving.history import NONE, History, Part, Step, checked, names

MOST_REQUESTS = 8


def lives(a: Aim, seed: int) -> Iterator[History]:
    """Draw histories without end."""
    draw = random.Random(seed)
    while True:
        yield _Drawn(a, draw).history(draw.randint(2, MOST_REQUESTS))


@dataclass
class _Drawn:
    """One history, as it is drawn."""

    aim: Aim
    draw: random.Random
    steps: list[Step] = field(default_factory=list)
    lengths: dict[str, int] = field(default_factory=dict)
    """The tokens of each request's prompt."""
    open: list[str] = field(default_factory=list)
    """Requests that nobody waits for yet."""
    rush: bool = False

    def history(self, requests: int) -> History:
        """Draw steps until there are so many requests. Some histories begin all at once, with long answers."""
        self.rush = "concurrent" in self.aim.declared.can and self.draw.random() < 0.25
        for _, name in zip(range(requests), names(), strict=False):
            self._request(name)
            if self.open and self.draw.random() < (0.2 if self.rush else 0.5):
                self._between()
        return checked((*self.steps, Step("wait")))

    def _request(self, name: str) -> None:
        can, draw = self.aim.declared.can, self.draw
        parts, length = self._prompt()
        if self.aim.declared.drafts and length > 8 and draw.random() < 0.3:  # its last tokens stood there before
            start = draw.randrange(length - 4)
            parts = (*parts, Part(source=name, start=start, stop=start + draw.randint(1, 3)))
        new = draw.choice((1, 1, 1, 2, 3, draw.randint(1, 20)))
        new = draw.randint(1, 2 * self.aim.block) if self.rush else new
        samples = draw.choice((2, 3)) if "samples" in can and draw.random() < 0.1 else 1
        salt = draw.choice("xy") if "salt" in can and draw.random() < 0.15 else ""
        adapter = draw.choice(ADAPTERS) if "adapters" in can and draw.random() < 0.4 else ""
        do = "submit" if "concurrent" in can and draw.random() < (1.0 if self.rush else 0.6) else "ask"
        ends = "stop" in can and samples == 1 and new > 1 and draw.random() < 0.15
        stop = draw.randint(1, new) if ends else 0
        vectors = self._vectors(length) if "vectors" in can and draw.random() < 0.4 else NONE
        step = Step(do, name, parts, new, samples, salt, stop=stop, adapter=adapter, vectors=vectors)
        self.steps.append(step)
        self.lengths[name] = length
        self.open += [name] * (do == "submit")

    def _prompt(self) -> tuple[tuple[Part, ...], int]:
        """Draw a prompt: new tokens, or those of an earlier request, with other ones behind it."""
        if not self.lengths or self.draw.random() < 0.25:
            return self._new(self._length(self.aim.longest))
        source = self.draw.choice(list(self.lengths))
        shared = min(self._length(self.aim.longest - 1), self.lengths[source])
        if self.draw.random() < 0.1 and shared > 2:
            return self._swapped(source, shared)
        parts, more = self._new(min(self._length(2 * self.aim.block), self.aim.longest - shared))
        return (Part(source=source, stop=shared), *parts), shared + more

    def _vectors(self, length: int) -> tuple[int, int | None]:
        """Draw where tokens of a prompt are handed in as vectors: all of them, or a run."""
        if self.draw.random() < 0.3:
            return 0, None
        start = self.draw.randrange(length)
        return start, start + self._length(length)

    def _swapped(self, source: str, shared: int) -> tuple[tuple[Part, ...], int]:
        at = self.draw.randrange(shared)
        behind = Part(source=source, start=at + 1, stop=shared)
        parts = (Part(source=source, stop=at), Part(1), behind, Part(1))
        return tuple(part for part in parts if not part.source or part.start != part.stop), shared + 1

    def _new(self, length: int) -> tuple[tuple[Part, ...], int]:
        length = max(1, length)
        if self.draw.random() < 0.2 and length > 4:
            half = length // 2
            return (Part(half, up=True), Part(length - half)), length
        return (Part(length),), length

    def _length(self, most: int) -> int:
        """Draw a length, often at the end of a block, a chunk or a window."""
        sizes = (self.aim.block, self.aim.chunk, *self.aim.windows)
        near = self.draw.choice(sizes) * self.draw.choice((1, 1, 2, 3)) + self.draw.choice((-1, 0, 0, 1))
        return max(1, min(self.draw.choice((near, near, self.draw.randint(1, max(1, most)))), most))

    def _between(self) -> None:
        """Let time pass, wait for a request, or cancel one."""
        kind = self.draw.random()
        if kind < 0.5:
            self.steps.append(Step("step", count=self.draw.randint(1, 3)))
            return
        name = self.open.pop(self.draw.randrange(len(self.open)))
        cancel = "cancel" in self.aim.declared.can and kind < 0.7
        self.steps.append(Step("cancel" if cancel else "wait", name))
