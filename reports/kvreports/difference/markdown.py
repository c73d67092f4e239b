"""The difference of two records as Markdown, for a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from kvreports.difference import parts
from kvreports.markdown import cited, code, fenced, literal
from kvreports.safe_text import cleaned
from kvspec.records.difference import Change, Difference


def render(difference: Difference, spec: str = "") -> str:
    """The answer, both records, and every group with its clauses. With `spec`, ids are links to the chapters."""
    difference = cleaned(difference)
    told = [f"# {literal(parts.headline(difference))}"]
    told += [f"Older: {literal(parts.side(difference.before))}\n\nNewer: {literal(parts.side(difference.now))}"]
    told += [f"Note: {literal(note)}" for note in difference.notes]
    for group, title in parts.TITLES.items():
        if changes := difference.of(group):
            told += [f"## {title}", *(text for block in parts.blocks(changes) for text in _block(block, spec))]
    return "\n\n".join(told) + "\n"


def _block(block: list[Change], spec: str) -> Iterator[str]:
    first = block[0]
    yield f"**{cited(parts.clauses(block), spec)}**: {literal(parts.verdicts(first))}"
    yield from filter(None, (first.trace and code(first.trace, 400), literal(first.why, 400)))
    if first.drawing:
        yield fenced("\n".join(first.drawing))
