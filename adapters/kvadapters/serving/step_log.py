"""A log of steps, which `kvconform check LOG` judges, as a scheduler goes on: what all loggers have in common.

A line stands in the log where what it tells happens on the device. So the tokens of a step stand right behind it,
also where an engine decides the next step before it knows them: steps are held back until then."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VARIABLE = "KVSTEPS"
"""The variable of the environment that says where the log goes."""

Tables = list[list[int]]
"""The pages of a request, for each group of layers."""


@dataclass(frozen=True)
class Held:
    """A step whose tokens are not known yet: the lines of the log from the step's own line on, and what its engine
    wants back with the tokens."""

    lines: list[dict[str, Any]]
    about: Any = None


class StepLog:
    """A log from its header on. It tells of a table what was not told before."""

    def __init__(self, path: Path, **header: Any) -> None:
        self.file = path.open("w", encoding="utf-8", buffering=1)
        self.held = deque[Held]()
        self.tables: dict[str, Tables] = {}
        """What was told of the tables of requests."""
        self.write(kvsteps=1, **header)

    def write(self, **event: Any) -> None:
        """Write a line, behind the steps that are held back."""
        if self.held:
            self.held[-1].lines.append(event)
        else:
            self.file.write(json.dumps(event) + "\n")

    def hold(self, parts: Mapping[str, Any], about: Any = None) -> None:
        """Hold back a step, which computes these parts, until its tokens are known."""
        self.held.append(Held([{"step": dict(parts)}], about))

    def release(self, chosen: Mapping[str, list[int]]) -> None:
        """Write the step that was held back first, the tokens that it chose, and what happened behind it."""
        first, *behind = self.held.popleft().lines
        lines = [first, *([{"sampled": dict(chosen)}] if chosen else []), *behind]
        self.file.writelines(json.dumps(line) + "\n" for line in lines)

    def told(self, name: str, now: Tables) -> dict[str, Tables]:
        """Say what is new of the tables of a request: nothing, the pages behind those that were told, or all."""
        was, self.tables[name] = self.tables.get(name), now
        if was is None or any(new[: len(old)] != old for old, new in zip(was, now, strict=True)):
            return {"tables": now}
        more = [new[len(old) :] for old, new in zip(was, now, strict=True)]
        return {"more": more} if any(more) else {}

    def freed(self, name: str, ended: bool) -> None:
        """Tell that a request has ended, and that its pages go back, if it has any."""
        if ended:
            self.write(finish=name)
        if self.tables.pop(name, None) is not None:
            self.write(free=name)


def log_path(engines: int, number: int) -> Path:
    """Say where the log goes: of engines that share requests, each has its own. Raises ValueError."""
    if not os.environ.get(VARIABLE):
        raise ValueError(f"set {VARIABLE} to the file that the log of steps is written to")
    path = Path(os.environ[VARIABLE])
    return path.with_stem(f"{path.stem}-{number}") if engines > 1 else path
