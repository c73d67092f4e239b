"""The errors with which an operation may fail: a closed set."""


class Refused(Exception):
    """The cache refuses this, as the spec allows or demands, and nothing has changed.

    `clause` is the id of the clause that allows the refusal; leave it empty if the adapter does not know it.
    """

    def __init__(self, clause: str, message: str) -> None:
        super().__init__(message)
        self.clause = clause


class Unsupported(Exception):
    """The adapter declares that it does not offer this, and nothing has changed."""


class BadInput(ValueError):
    """A file, a description or a message does not follow its format; says what, where, and what to do."""


class NotWhole(Exception):
    """The spec or the suite lacks a part that a chapter's record lists; says which file, and which name in it."""


class CannotRun(Exception):
    """This adapter cannot run on this machine; says why and what to do."""
