"""A rule that a log breaks."""

from __future__ import annotations

from kvconform.steps.requests import Request


class Broken(Exception):
    """The log breaks a clause. `message` says what would have been seen, and where; `requests` are those that it
    is about, the one that is wronged first."""

    def __init__(self, clause: str, message: str, requests: tuple[str, ...] = ()) -> None:
        super().__init__(f"{clause}: {message}")
        self.clause, self.message, self.requests = clause, message, requests
        self.line = 0
        """The line of the file, as soon as it is known."""


def broken_by(clause: str, step: int, request: Request, what: str, *others: Request) -> Broken:
    """Say what a request breaks in a step, and who else has to do with it."""
    names = (request.name, *(other.name for other in others))
    return Broken(clause, f"step {step}, {request.name}{what}", names)
