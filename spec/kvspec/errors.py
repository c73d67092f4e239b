"""The closed set of ways in which an operation may not happen."""


class Refused(Exception):
    """The spec lets (or obliges) the cache to refuse this, and nothing has changed.

    `clause` is the id of the clause that allows the refusal; an adapter that does not know it leaves it empty.
    """

    def __init__(self, clause: str, message: str) -> None:
        super().__init__(message)
        self.clause = clause


class Unsupported(Exception):
    """The adapter declares that it does not offer this, and nothing has changed."""


class BadInput(ValueError):
    """A file, a description or a message that does not follow its format: says what, where, and what to do."""


class CannotRun(Exception):
    """This adapter cannot run on this machine; says why and what to do."""
