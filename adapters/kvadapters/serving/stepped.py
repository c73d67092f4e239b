"""Engines in this process whose steps are driven: `add` a request, `step`, `abort` one, as the serving engine of
the examples has them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kvadapters.serving.driver import COUNTED, Answer, Declared, Driver, EngineFailed, Request, Sample
from kvspec.errors import Refused
from kvspec.geometry import Array

IDLE = 3_000
"""Steps without an answer after which an engine is taken for stuck."""


class Output(NamedTuple):
    """The answer to a request, of an engine that tells no logprobs."""

    id: int
    tokens: list[int]
    sample: int = 0
    logprobs: None = None
    reused: int | None = None


class Stepped(Driver):
    """Drives what `make` gives: `add(tokens, new, samples=, salt=, bias=)` gives an id, `step()` a list of outputs
    with `id`, `sample`, `tokens`, `logprobs` [new, vocabulary] and `reused`, `abort(id)` lets a request go.
    Logprobs and `reused` are None where the engine does not tell them. One that can `stop` has `add(stop=)`, one
    with adapters `add(adapter=)`. One that takes `vectors` has `add(vectors=)`, a mapping from places to rows of
    the `embedding` [vocabulary, hidden]; the ids there are 0."""

    def __init__(self, make: Callable[[], Any], declared: Declared, embedding: Array | None = None) -> None:
        self.make, self.declared, self.embedding = make, declared, embedding
        self.engine, self.before = make(), Counter[str]()
        self.outputs: defaultdict[Any, dict[int, Any]] = defaultdict(dict)
        self.cancelled = set[Any]()

    def reset(self) -> None:
        """Make the engine again; what the one before has counted stays counted."""
        self.before, self.engine = Counter(self.counts()), self.make()
        self.outputs.clear()
        self.cancelled.clear()

    def submit(self, request: Request) -> Any:
        """Add a request. What the engine raises as ValueError is its refusal."""
        more: dict[str, Any] = {"salt": request.salt, "bias": dict(request.bias)}
        more |= {} if request.stop is None else {"stop": request.stop}
        more |= {"adapter": request.adapter} if request.adapter else {}
        if request.places and self.embedding is not None:
            more["vectors"] = {at: self.embedding[request.tokens[at]] for at in request.places}
        try:
            number = self.engine.add(request.ids, request.new, samples=request.samples, **more)
        except ValueError as e:
            raise Refused("", str(e)) from None
        return number, request.samples

    def wait(self, handle: Any) -> Answer:
        """Step until all samples are there."""
        number, samples = handle
        for _ in range(IDLE):
            if len(self.outputs[number]) == samples:
                found = [self.outputs[number][i] for i in range(samples)]
                made = tuple(Sample(tuple(int(t) for t in o.tokens), o.logprobs) for o in found)
                return Answer(made, max((int(o.reused) for o in found if o.reused is not None), default=None))
            self.step(1)
        raise EngineFailed(f"no answer after {IDLE} steps")

    def step(self, count: int) -> None:
        """Step the engine."""
        for _ in range(count):
            try:
                outputs = self.engine.step()
            except Exception as e:  # whatever it raises, the engine fails here
                raise EngineFailed(f"{type(e).__name__}: {e}") from e
            for output in outputs:
                if output.id in self.cancelled:
                    raise EngineFailed(f"it answers request {output.id}, which was cancelled")
                self.outputs[output.id][output.sample] = output

    def cancel(self, handle: Any) -> None:
        """Abort a request, unless it has ended."""
        if len(self.outputs[handle[0]]) < handle[1]:
            self.engine.abort(handle[0])
            self.cancelled.add(handle[0])
        del self.outputs[handle[0]]

    def counts(self) -> Mapping[str, int]:
        """Give what the engine counts, and those before it."""
        counts = self.engine.counts()
        return {name: self.before[name] + int(counts[name]) for name in COUNTED if name in counts}
