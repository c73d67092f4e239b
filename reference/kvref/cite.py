"""Which clauses a step exercised: each line that enforces a rule names its clause with `cite`."""

from __future__ import annotations

_cited: list[str] = []


def cite(*clauses: str) -> None:
    """Note that the line enforces these clauses."""
    _cited.extend(clauses)


def cited() -> tuple[str, ...]:
    """The clauses cited since the last call, each once, in order."""
    out = tuple(dict.fromkeys(_cited))
    _cited.clear()
    return out
