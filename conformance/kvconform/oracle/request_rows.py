"""Rows of requests: what a row is follows from all that it depends on, so equal beginnings have equal rows."""

from __future__ import annotations

from typing import Any

from kvspec.contract.pools import Request
from kvspec.geometry import Config, Pair
from kvspec.operations.table import Operation, cache_of
from kvspec.operations.texts import tokens_in
from kvspec.rows.book import SerialBook


class RequestRows:
    """The requests of a trace by their caches and numbers, and the serials of rows by what they depend on."""

    def __init__(self, book: SerialBook) -> None:
        self._book = book
        self._requests: dict[str, dict[int, Request]] = {}
        self._proposed: dict[tuple[str, int], tuple[int, ...]] = {}
        self._serials: dict[Any, int] = {}

    def rows(self, op: Operation, config: Config) -> Pair:
        """Keys and values `[1, kv_heads, n, dim]` of all tokens of an operation's request; none where no sequence
        has its number."""
        return Pair(*self._book.of_serials(config, self.serials(op)))

    def serials(self, op: Operation) -> list[int]:
        """The serials of all tokens of an operation's request; none where no sequence has its number."""
        request = self._meant(op)
        return [] if request is None else [self._serial(request, p) for p in range(len(request.tokens))]

    def _meant(self, op: Operation) -> Request | None:
        """The request of an operation, with the tokens that it brings."""
        if op["op"] == "request":
            return Request.of(op)
        found = self._requests.get(cache_of(op), {}).get(op["sequence"])
        return found and found.longer(tokens_in(op.get("tokens", "-")))

    def _serial(self, request: Request, p: int) -> int:
        on = request.depends(p)
        if on not in self._serials:
            self._serials[on] = self._book.next
            self._book.took(1)
        return self._serials[on]

    def forget(self, cache: str) -> None:
        """A cache is opened afresh: no number is in use."""
        self._requests.pop(cache, None)

    def done(self, op: Operation) -> None:
        """Note an operation that was done. One on a sequence that is not there was taken though it is refused."""
        name, number, here = cache_of(op), op.get("sequence", -1), self._requests.setdefault(cache_of(op), {})
        if op["op"] != "request" and number not in here:
            return
        match op["op"]:
            case "request":
                here[next(n for n in range(len(here) + 1) if n not in here)] = Request.of(op)
            case "answer":
                here[number] = here[number].longer(tokens_in(op["tokens"]))
            case "propose":
                self._proposed[name, number] = tokens_in(op["tokens"])
            case "accept":
                here[number] = here[number].longer(self._proposed.pop((name, number), ())[: op["n"]])
            case "finish" | "abort":
                del here[number]
                self._proposed.pop((name, number), None)
