"""Writes down what the scheduler decides, a line of JSON for each event: `kvconform check LOG` judges it.

    with StepLog(engine, Path("steps.jsonl")):
        ...

It stands around the engine, and the engine knows nothing of it: a logger for another engine can look the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from serving_engine.blocks import NULL
from serving_engine.engine import Engine
from serving_engine.prefix_cache import Name
from serving_engine.scheduler import Work
from serving_engine.sequence import Sequence


class StepLog:
    """The log of an engine from its start on. It tells of a table what was not told before."""

    def __init__(self, engine: Engine, path: Path) -> None:
        self.engine, self.file = engine, path.open("w", encoding="utf-8", buffering=1)
        self.tables: dict[Sequence, list[list[int]]] = {}
        self.tokens: dict[Sequence, int] = {}
        """What was told of each sequence: its tables, and how many tokens it has."""
        self.held: list[str] = []
        self.holding = False
        """What happens while a step is decided is told behind the tokens of the step before it: these come later,
        if it is decided ahead of them."""
        self.header()
        after(engine, "add", lambda *_: self.added(engine.scheduler.waiting[-1]))
        after(engine, "choose", lambda _, sequence, *more: self.sampled(sequence))
        after(engine, "step", lambda *_: self.write(left=len(engine.tables.pool.free)))
        after(engine.tables, "fork", lambda child, parent, sample: self.forked(parent, child))
        before(engine.scheduler, "schedule", lambda: self.hold(True))
        after(engine.scheduler, "schedule", lambda works: self.hold(False))
        before(engine, "compute", self.scheduled)
        before(engine.tables.host, "offload", lambda name, block: self.write(offload=[[block, kept_as(name)]]))
        before(engine.tables.host, "load", lambda name, rows, block: self.write(load=[[kept_as(name), block]]))
        before(engine.rows, "copy", lambda source, target: self.write(copy=[[source, target]]))
        before(engine.scheduler, "preempt", self.freed)
        before(engine.scheduler, "remove", self.removed)

    def __enter__(self) -> StepLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.file.close()

    def write(self, **event: Any) -> None:
        """Write a line, or hold it back."""
        line = json.dumps(event) + "\n"
        if self.holding:
            self.held.append(line)
        else:
            self.file.write(line)

    def hold(self, holding: bool) -> None:
        """Begin to hold lines back, or go on to write them; what is held back stays so."""
        self.holding = holding

    def header(self) -> None:
        """Describe the engine."""
        settings = self.engine.settings
        windows = [group.window for group in self.engine.rows.groups]
        groups = [
            {"block": settings.block_size, "view": "full" if window is None else f"window {window}"}
            for window in windows
        ]
        self.write(kvsteps=1, engine="serving_engine", pages=settings.blocks + 1, reserved=[NULL], groups=groups)

    def added(self, sequence: Sequence) -> None:
        """Tell of a request; its other samples are forks of the first one."""
        self.tokens[sequence] = len(sequence.tokens)
        self.write(add=name(sequence), tokens=sequence.tokens, **self.shares(sequence))

    def shares(self, sequence: Sequence) -> dict[str, Any]:
        """Tell what requests must have alike to share rows."""
        adapter, vectors = sequence.request.adapter, sequence.request.vectors
        media = [[at, hashlib.sha256(vector.tobytes()).hexdigest()] for at, vector in sorted(vectors.items())]
        more = {"adapter": adapter, "media": media}
        return {"salt": sequence.request.salt, **{key: given for key, given in more.items() if given}}

    def forked(self, parent: Sequence, child: Sequence) -> None:
        """Tell of another sample: it has the text and the tables of the first."""
        self.tokens[child] = self.tokens[parent]
        self.tables[child] = self.tables[parent]
        self.write(fork=name(parent), **{"as": name(child)})

    def scheduled(self, works: list[Work]) -> None:
        """Tell what a step computes, and where, behind what was held back."""
        self.file.writelines(self.held)
        self.held.clear()
        if works:
            self.write(step={name(work.sequence): self.part(work) for work in works})

    def part(self, work: Work) -> dict[str, Any]:
        """Tell what it computes of a sequence."""
        sequence, drafts = work.sequence, {"drafts": work.drafts} if work.drafts else {}
        was, now = self.tables.get(sequence), [list(table) for table in sequence.tables]
        self.tables[sequence] = now
        told: dict[str, Any] = {"start": sequence.computed, "n": work.count + len(work.drafts), **drafts}
        if was is None or any(new[: len(old)] != old for old, new in zip(was, now, strict=True)):
            return {**told, "tables": now}
        more = [new[len(old) :] for old, new in zip(was, now, strict=True)]
        return {**told, "more": more} if any(more) else told

    def sampled(self, sequence: Sequence) -> None:
        """Tell which tokens were chosen behind a sequence; of one that has ended, they were told."""
        if more := sequence.known[self.tokens.get(sequence, len(sequence.tokens)) :]:
            self.write(sampled={name(sequence): more})
            self.tokens[sequence] += len(more)

    def freed(self, sequence: Sequence) -> None:
        """Tell that the blocks of a sequence go back, if it has any."""
        if self.tables.pop(sequence, None) is not None:
            self.write(free=name(sequence))

    def removed(self, sequence: Sequence) -> None:
        """Tell that a sequence has ended; its last tokens are not told yet."""
        self.sampled(sequence)
        self.write(finish=name(sequence))
        self.freed(sequence)
        del self.tokens[sequence]


def name(sequence: Sequence) -> str:
    """Name a sample of a request."""
    return f"{sequence.request.id}.{sequence.sample}"


def kept_as(name: Name) -> str:
    """Name a block that is kept by the host."""
    return f"{name[0]}/{name[1].hex()}"


def before(owner: object, method: str, do: Callable[..., None]) -> None:
    """Let something be done before a method of an object, with its arguments."""
    right = getattr(owner, method)

    def both(*args: Any, **more: Any) -> Any:
        do(*args)
        return right(*args, **more)

    setattr(owner, method, both)


def after(owner: object, method: str, do: Callable[..., None]) -> None:
    """Let something be done after a method of an object, with its result and its arguments."""
    right = getattr(owner, method)

    def both(*args: Any, **more: Any) -> Any:
        result = right(*args, **more)
        do(result, *args)
        return result

    setattr(owner, method, both)
