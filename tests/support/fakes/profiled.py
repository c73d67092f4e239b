"""Adapters that are measured and do nothing: one without a clock, one with; and a profile of them."""

from __future__ import annotations

from typing import Any

from kvprofile import profile_run
from kvprofile.budget import Budget
from kvprofile.case import Case
from kvprofile.measure import Pace
from kvprofile.model_shapes import GPT2
from kvprofile.peers import Found
from kvspec.contract import description
from kvspec.contract.timing import Streams


class Broken:
    """Its appends fail after so many; it has no clock and no meter."""

    def __init__(self, after: int, raises: type[BaseException]) -> None:
        self.after, self.raises = after, raises

    def describe(self) -> dict[str, Any]:
        return {"name": "broken", "chapters": {"growing": "visible"}}

    def open(self, kind: str, config: Any) -> Broken:
        return self

    def append(self, keys: Any, values: Any) -> None:
        self.after -= 1
        if self.after < 0:
            raise self.raises("no more")

    def rewind(self, to: int) -> None:
        pass


ROOM = Budget(rotation=1 << 16, share=1 << 18)


def profiled(adapter: Any, *some: Case, peers: Any = ()) -> profile_run.Session:
    made = profile_run.Session(
        adapter, description(adapter.describe()), Found(peers, []), ROOM, Pace(2, 1e-6, 1), lambda t: None
    )
    made.run(some)
    return made


SMALL = Case("append", GPT2, 8)


class Clocked(Broken):
    """An append keeps its device busy for 2 ms, a stream of 10^8 bytes for 50 ms."""

    def __init__(self) -> None:
        super().__init__(1 << 60, ValueError)
        self.busy = 0.0

    def append(self, keys: Any, values: Any) -> None:
        self.busy += 0.002

    def clock(self) -> str:
        return "told"

    def elapsed(self, work: Any) -> float:
        self.busy = 0.0
        work()
        return self.busy

    def synchronise(self) -> None:
        pass

    def stream(self) -> None:
        self.busy += 0.05

    def streams(self, most: int) -> Streams:
        return Streams(self.stream, self.stream, self.stream, 10**8, "told")
