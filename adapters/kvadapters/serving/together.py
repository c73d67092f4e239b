"""Libraries in this process that compute a batch of requests at one call, and have no server.

A request is kept until somebody waits for it. It is computed then, with others that are under way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kvadapters.serving.driver import Answer, Driver, EngineFailed, Request

FAILURES = (RuntimeError, ValueError, IndexError, TypeError, AttributeError)


@dataclass(eq=False)
class Asked:
    """A request, and its answer once it is there."""

    request: Request
    answer: Answer | None = None


class Together(Driver):
    """Computes up to `sequences` requests at once. `company` and `answered` are the library's."""

    def __init__(self, sequences: int) -> None:
        self.sequences = sequences
        self.open: list[Asked] = []

    def company(self, one: Asked) -> Sequence[Asked]:
        """Choose those of `open` that may be computed with one of them, without it."""
        raise NotImplementedError

    def answered(self, batch: Sequence[Asked]) -> Sequence[Answer]:
        """Compute a batch. An exception of `FAILURES` is a failure of the engine."""
        raise NotImplementedError

    def submit(self, request: Request) -> Any:
        """Keep a request until somebody waits."""
        self.open.append(Asked(request))
        return self.open[-1]

    def cancel(self, handle: Any) -> None:
        """Forget a request that was not begun."""
        self.open = [one for one in self.open if one is not handle]

    def wait(self, handle: Any) -> Answer:
        """Compute a request together with its company. Raises EngineFailed."""
        if handle.answer is None:
            batch = [handle, *self.company(handle)][: self.sequences]
            self.open = [one for one in self.open if one not in batch]
            try:
                answers = self.answered(batch)
            except FAILURES as e:
                raise EngineFailed(f"{type(e).__name__}: {e}") from e
            for one, answer in zip(batch, answers, strict=True):
                one.answer = answer
        found: Answer = handle.answer
        return found
