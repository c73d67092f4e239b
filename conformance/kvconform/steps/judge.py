"""Judges the events of a log one after another: `Judge.take` raises Broken for the first that breaks a clause.

What each query sees is not looked up anew in each step. A row that a request holds was written by the request
itself, or checked when it came into its tables. Whoever writes to a page that another request holds breaks a
clause at once. So all that is to be checked in a step is what came into tables, and what is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from kvconform.steps.broken import Broken
from kvconform.steps.holders import Holders
from kvconform.steps.log_file import LARGEST_NUMBER, Event, Header, Line, number, numbers, text
from kvconform.steps.memory import Memory
from kvconform.steps.moves import Moves
from kvconform.steps.requests import Request, forked, request
from kvconform.steps.sight import Sight
from kvconform.steps.step import Stepping
from kvspec.errors import BadInput

MOST_REQUESTS, MOST_ALIVE = 1 << 20, 1 << 25
"""Requests that are alive at once, and tokens that they have together."""


class Judge:
    """Remembers what lies in each slot and who is alive; `counts` what was seen."""

    def __init__(self, header: Header) -> None:
        self.header, self.counts = header, Counter[str]()
        self.memory = [Memory(pages, header.rows) for pages in header.pages]
        self.alive: dict[str, Request] = {}
        self._serial, self._tokens = 0, 0
        self._holders, self._sight = Holders(header), Sight(header, self.memory)
        self._moves = Moves(header, self.memory, self._holders, self.counts)
        self._steps = Stepping(header, self.memory, self._holders, self._sight, self.counts)
        self.counts["groups"] = len(header.groups)

    def judge(self, lines: Iterable[Line]) -> Broken | None:
        """Take all events, up to the first that breaks a clause; give what it breaks. Raises BadInput."""
        for line in lines:
            try:
                self.take(line)
            except Broken as broken:
                broken.line = line.number
                return broken
            except BadInput as e:
                raise BadInput(f"line {line.number}: {e}") from None
        return None

    def take(self, line: Line) -> None:
        """Take one event. Raises Broken, and BadInput for what cannot be."""
        if line.verb in ("copy", "zero", "offload", "load"):
            self._moves.take(line.verb, line.event)
        else:
            getattr(self, f"_{line.verb}")(line.event)

    def _add(self, event: Event) -> None:
        self._serial += 1
        made = request(self._serial, event)
        self._admit(made)
        for what in ("salt", "adapter", "media"):
            self.counts[what] += bool(getattr(made, what))

    def _admit(self, made: Request) -> None:
        if made.name in self.alive:
            raise BadInput(f"a request named {made.name} is alive; a name is used again when its request has ended")
        self._tokens += len(made.history)
        if len(self.alive) >= MOST_REQUESTS or self._tokens > MOST_ALIVE:
            raise BadInput(f"more than {MOST_REQUESTS} requests, or {MOST_ALIVE} tokens, are alive at once")
        self.alive[made.name] = made
        self._sight.knows(made)
        self.counts["requests"] += 1

    def _fork(self, event: Event) -> None:
        parent, name = self._named(event["fork"]), text(event.get("as"), "the name of a fork")
        if parent.tables is None:
            raise Broken("STEP-21", f"{parent.name} has no pages that {name} could have", (parent.name,))
        self._serial += 1
        child = forked(self._serial, parent, name)
        self._admit(child)
        for group, table in enumerate(child.begun):
            for index in range(child.low[group], len(table)):
                self._holders.hold(child, group, index)
        self.counts["forks"] += 1

    def _swap(self, event: Event) -> None:
        self._steps.swap(self._named(event["swap"]), event)
        self.counts["swaps"] += 1

    def _named(self, name: Any) -> Request:
        found = self.alive.get(text(name, "a request's name"))
        if found is None:
            raise BadInput(f"no request named {name} is alive: it was not added, or has ended")
        return found

    def _step(self, event: Event) -> None:
        if not isinstance(event["step"], dict):
            raise BadInput('a step is {"name": {"start": 0, "n": 1}}, for each request that is computed')
        self._steps.take(event["step"], self.alive)

    def _sampled(self, event: Event) -> None:
        if not isinstance(event["sampled"], dict):
            raise BadInput('sampled is {"name": [tokens]}')
        for name, tokens in event["sampled"].items():
            chosen = numbers(tokens, f"the tokens of {name}", LARGEST_NUMBER)
            self._tokens += len(chosen)
            self._steps.sampled(self.alive.get(name) or self._named(name), chosen)

    def _finish(self, event: Event) -> None:
        ended = self._named(event["finish"])
        ended.finished = True
        self.counts["finished"] += 1
        self._end(ended)

    def _free(self, event: Event) -> None:
        freed = self._named(event["free"])
        if freed.tables is not None and not freed.finished:
            self.counts["preemptions"] += 1
        self._holders.drop_all(freed)
        freed.tables, freed.next, freed.drafts = None, 0, None
        self._end(freed)

    def _end(self, ended: Request) -> None:
        if ended.finished and ended.tables is None:
            del self.alive[ended.name]
            self._tokens -= len(ended.history)

    def _reset(self, event: Event) -> None:
        if event["reset"] is not True:
            raise BadInput('a reset is {"reset": true}')
        self._sight.reset = self.counts["steps"]
        self.counts["resets"] += 1

    def _left(self, event: Event) -> None:
        """Compare the pages that the engine calls free with those that requests hold."""
        given = event["left"] if isinstance(event["left"], list) else [event["left"]]
        if len(given) != self.header.pools:
            raise BadInput(f"left has a number for each of {self.header.pools} pools")
        idle = all(request.tables is None for request in self.alive.values())
        for pool, free in enumerate(given):
            number(free, "left", 0, LARGEST_NUMBER)
            held, most = len(self._holders.of[pool]), self.header.pages[pool] - len(self.header.reserved)
            where = f"after step {self.counts['steps']}" + (f", pool {pool}" if self.header.pools > 1 else "")
            if free + held > most:
                raise Broken(
                    "STEP-31", f"{where}: {free} pages are free and requests hold {held}; there are {most}"
                )
            if idle and free < most:
                raise Broken("STEP-30", f"{where}: no request has pages, and {free} of {most} are free")
        self.counts["idle"] += idle
        self.counts["left"] += 1
