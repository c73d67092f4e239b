"""Which clauses a step exercised: each line that enforces a rule names its clause with `cite`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_cited: list[str] = []


def cite(*clauses: str) -> None:
    """Note that the line enforces these clauses."""
    _cited.extend(clauses)


@contextmanager
def uncited() -> Iterator[None]:
    """Steps inside this context serve another step, so they exercise no clauses."""
    before = len(_cited)
    yield
    del _cited[before:]


def cited() -> tuple[str, ...]:
    """The clauses cited since the last call, each once, in order."""
    out = tuple(dict.fromkeys(_cited))
    _cited.clear()
    return out
