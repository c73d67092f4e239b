"""A serving engine's record as one HTML page."""

from __future__ import annotations

from kvreports import page
from kvreports.safe_text import cleaned
from kvreports.serving import parts
from kvspec.records.serving import ServingRecord

STYLES, SCRIPTS = ("page.css", "mutants.css"), ("theme.js",)


def render(record: ServingRecord) -> str:
    """The page."""
    record = cleaned(record)
    said = {"headline": parts.headline(record), "head": parts.HEAD, "rows": parts.rows(record)}
    return page.render("serving.html.j2", STYLES, SCRIPTS, record=record, facts=parts.facts(record), **said)
