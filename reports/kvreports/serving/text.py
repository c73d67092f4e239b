"""A serving engine's record for a terminal."""

from __future__ import annotations

from tabulate import tabulate

from kvreports.safe_text import cleaned, line
from kvreports.serving import parts
from kvspec.records.serving import ServingFailure, ServingRecord


def render(record: ServingRecord) -> str:
    """The failures with their shortest histories, a row for each clause, and the result."""
    record = cleaned(record)
    told = [failure(f) for f in record.failures]
    told += [tabulate([tuple(map(line, row)) for row in parts.rows(record)], parts.HEAD, disable_numparse=True)]
    told += [tabulate([(name, line(text)) for name, text in parts.facts(record)], tablefmt="plain")]
    told += ["\n".join(f"cannot be told: {line(text)} ({n})" for text, n in record.untold.items())]
    told += [parts.headline(record)]
    return "\n\n".join(filter(None, told)) + "\n"


def failure(f: ServingFailure) -> str:
    """One failure: the clause, the shortest history, and what is seen in it."""
    before = "" if f.alone else " (only behind other requests)"
    lines = [f"{f.clause}: {line(f.history)}{before}", *(f"  {line(each)}" for each in f.drawing)]
    return "\n".join([*lines, *(f"  {line(each)}" for each in f.found[:1] if not f.drawing)])
