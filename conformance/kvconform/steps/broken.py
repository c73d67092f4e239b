"""A rule that a log breaks."""

from __future__ import annotations


class Broken(Exception):
    """The log breaks a clause. `message` says what would have been seen, and where; `requests` are those that it
    is about, the one that is wronged first."""

    def __init__(self, clause: str, message: str, requests: tuple[str, ...] = ()) -> None:
        super().__init__(f"{clause}: {message}")
        self.clause, self.message, self.requests = clause, message, requests
        self.line = 0
        """The line of the file, as soon as it is known."""
