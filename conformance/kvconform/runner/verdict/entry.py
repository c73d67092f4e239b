"""The text of an entry of `kvconform.toml` that makes a failure known: with a model, or with its outcome."""

from __future__ import annotations

import json

from packaging.version import InvalidVersion, Version

from kvconform.runner.verdict import outcomes
from kvspec import notation
from kvspec.contract import Description
from kvspec.errors import BadInput
from kvspec.records.run import Failure, KnownBug


def of_bug(bug: KnownBug, failure: Failure, adapter: Description) -> str:
    """The entry with a planted bug as its model."""
    return _entry(adapter, clause=_first(bug.clauses, failure.clauses), model=bug.id, reason=bug.says)


def of_outcome(failure: Failure, adapter: Description) -> str:
    """The entry with the trace and what it shows; empty for what no entry makes known."""
    if failure.verdict != "FAIL" or not failure.clauses or not failure.deterministic:
        return ""
    try:
        notation.from_sentence(failure.words)
    except BadInput:
        return ""  # its words do not say all of the trace
    shows = outcomes.told(failure.message)
    return _entry(adapter, clause=failure.clauses[0], trace=failure.words, shows=shows, reason="...")


def _first(clauses: list[str], blamed: list[str]) -> str:
    """The first clause that a bug breaks and the failure blames."""
    return next((c for c in clauses if c in blamed), blamed[0] if blamed else clauses[0])


def _entry(adapter: Description, **fields: str) -> str:
    try:
        versions = {"versions": f"=={Version(adapter.version)}"}
    except InvalidVersion:
        versions = {}
    said = {"adapter": adapter.name, **fields, **versions}
    return "\n".join(
        ["[[known]]", *(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in said.items())]
    )
