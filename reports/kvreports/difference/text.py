"""The difference of two records for a terminal: the answer comes last, where a terminal shows it. Of each group
the first trace is drawn, where it has a drawing."""

from __future__ import annotations

from collections.abc import Iterator

from kvreports import terminal
from kvreports.difference import parts
from kvreports.safe_text import cleaned, line, shortened
from kvreports.terminal import paragraph
from kvspec.records.difference import Change, Difference, Group


def render(difference: Difference) -> str:
    """Every group with its clauses, the gravest last; then both records, and the answer."""
    difference, width = cleaned(difference), terminal.width()
    told = [_group(group, found, width) for group in reversed(parts.TITLES) if (found := difference.of(group))]
    told += [_sides(difference, width), paragraph(parts.headline(difference), width)]
    return "\n\n".join(told) + "\n"


def _sides(difference: Difference, width: int) -> str:
    lines = [f"older: {parts.side(difference.before)}", f"newer: {parts.side(difference.now)}"]
    lines += [f"note: {line(shortened(note, 400))}" for note in difference.notes]
    return "\n".join(paragraph(line(shortened(text, 600)), width, rest="  ") for text in lines)


def _group(group: Group, changes: list[Change], width: int) -> str:
    head = f"{parts.TITLES[group]}: {len(changes)} clause{'s' * (len(changes) != 1)}"
    first, *others = parts.blocks(changes)
    told = [*_block(first, width), *(f"    {text}" for text in first[0].drawing)]
    return "\n".join([head, *told, *(text for block in others for text in _block(block, width))])


def _block(block: list[Change], width: int) -> Iterator[str]:
    """The clauses, the verdicts, the trace and what it shows."""
    first = block[0]
    yield _indented(f"{', '.join(parts.clauses(block))}: {parts.verdicts(first)}", width, 2)
    for text in filter(None, (first.trace, first.why)):
        yield _indented(shortened(text, 400), width, 4)


def _indented(text: str, width: int, by: int) -> str:
    return paragraph(line(text), width, " " * by, " " * (by + 2))
