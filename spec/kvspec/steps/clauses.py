"""The clauses of STEP, read from `step.md`: what each says, and its worked examples.

A clause has in brackets what a log must have for the clause to be judged by it. An example is a log that breaks its
clause, and behind it what is to be said of that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

from kvspec.errors import BadInput
from kvspec.reading.numbered import numbered

HEADER = '{"kvsteps": 1, "pages": 8, "reserved": [0], "groups": [{"block": 4, "view": "full"}]}'
"""The header of an example that has none."""

SEEN = (
    *("rows", "hits", "groups", "evictions", "drafts", "sampled", "salt", "adapter", "media"),
    *("copies", "zeroed", "loads", "resets", "idle", "left"),
)
"""What a log may have, so that a clause is judged by it."""

_CLAUSE = re.compile(
    r"^\*\*(?P<id>STEP-[1-9]\d*)\*\* \((?P<needs>[\w, ]+)\)\. (?P<text>.+?)(?=\n\n|\Z)(?P<rest>.*)", re.M | re.S
)
_EXAMPLE = re.compile(
    r"^Example (?P<id>STEP-\d+\.\d+)\n\n```\n(?P<log>.*?)```\n\n> (?P<says>.+?)(?=\n\n|\n?\Z)", re.M | re.S
)


@dataclass(frozen=True)
class Example:
    """A log, and what is to be said of its last line."""

    id: str
    log: str
    says: str


@dataclass(frozen=True)
class Clause:
    """One rule, its reason, and its examples; `needs` is what a log must have."""

    id: str
    needs: tuple[str, ...]
    text: str
    reason: str
    examples: tuple[Example, ...]


def chapter_text() -> str:
    """Read the chapter."""
    return resources.files("kvspec").joinpath("steps", "step.md").read_text(encoding="utf-8")


@cache
def index() -> dict[str, Clause]:
    """Give all clauses by id, in their order. Raises BadInput that names what cannot be read."""
    return {clause.id: clause for clause in read(chapter_text())}


def read(text: str) -> list[Clause]:
    """Read clauses. Raises BadInput."""
    return numbered(text, "STEP", _clause)


def _clause(block: str) -> Clause:
    found = _CLAUSE.match(block)
    needs = tuple(found["needs"].split(", ")) if found else ()
    if not found or not set(needs) <= set(SEEN):
        raise BadInput(f"step.md: not a clause: {block.partition(chr(10))[0]!r}; needs are {', '.join(SEEN)}")
    reasons = [_plain(p.strip()[6:]) for p in found["rest"].split("\n\n") if p.strip().startswith("*Why:*")]
    examples = tuple(_examples(found["id"], found["rest"]))
    if not examples:
        raise BadInput(f"step.md: {found['id']} needs a worked example of its own")
    return Clause(found["id"], needs, _plain(found["text"]), "\n\n".join(reasons), examples)


def _examples(clause: str, rest: str) -> Iterator[Example]:
    for number, found in enumerate(_EXAMPLE.finditer(rest), 1):
        if found["id"] != f"{clause}.{number}":
            raise BadInput(f"step.md: {found['id']} stands where {clause}.{number} is expected")
        log = found["log"] if found["log"].startswith('{"kvsteps"') else f"{HEADER}\n{found['log']}"
        yield Example(found["id"], log, _plain(found["says"].replace("\n> ", " ")))


def _plain(text: str) -> str:
    return " ".join(text.split())
