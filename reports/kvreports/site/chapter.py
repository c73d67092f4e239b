"""Splits a chapter's Markdown into its parts: prose between clauses, and each clause with its paragraphs and
examples."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CLAUSE = re.compile(
    r'^<a id="(?P<id>[A-Z]+-\d+)"></a>\n\*\*(?P=id)\*\* (?P<marks>\([^)]*\))\. '
    r"(?P<rule>.+?)(?:\n\n|\Z)(?P<rest>.*)",
    re.M | re.S,
)
_EXAMPLE = re.compile(r"^(?=Example [A-Z]+-\d+\.\d+,)", re.M)
_HEAD = re.compile(
    r"^Example (?P<id>[A-Z]+-\d+\.\d+), (?P<setting>[^\n]*)\n\n(?P<table>(?:\|[^\n]*\|(?:\n|\Z))+)(?P<after>.*)",
    re.S,
)


@dataclass(frozen=True)
class Prose:
    """Markdown between clauses."""

    text: str


@dataclass(frozen=True)
class Table:
    """A worked example as it is written, and the paragraph after it, which introduces the next."""

    id: str
    setting: str
    table: str
    after: str


@dataclass(frozen=True)
class Written:
    """A clause as it is written: its marks, rule, the paragraphs below, and its examples."""

    id: str
    marks: str
    rule: str
    below: str
    examples: tuple[Table, ...]


def parts(text: str) -> list[Prose | Written]:
    """The parts of a chapter, in order. A heading ends a clause."""
    pieces = re.split(r'^(?=<a id="[A-Z]+-\d+"></a>$|## )', text, flags=re.M)
    return [_written(piece) or Prose(piece) for piece in pieces if piece.strip()]


def _written(piece: str) -> Written | None:
    found = _CLAUSE.match(piece)
    if found is None:
        return None
    below, *examples = _EXAMPLE.split(found["rest"])
    tables = tuple(
        Table(m["id"], m["setting"], m["table"], m["after"].strip()) for m in map(_HEAD.match, examples) if m
    )
    return Written(found["id"], found["marks"], found["rule"], below.strip(), tables)
