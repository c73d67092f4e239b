"""The operations a trace may hold: one table for the trace parser, the notation, the schema and the wire."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from kvspec.chapters.record import Argument, OperationRecord
from kvspec.geometry import Config
from kvspec.registry import CACHES, KINDS, RECORDS, arguments, has

OPEN = OperationRecord(
    "open",
    "Open another cache, or one of this name afresh. Sizes may be out of range on purpose.",
    (
        Argument("kind", "kind", default=None, kinds=KINDS),
        *arguments(
            [
                {
                    "sizes": [
                        "window",
                        "step",
                        "batch",
                        "kv_heads",
                        "k_dim",
                        "v_dim",
                        "capacity",
                        "layers",
                        "max_len",
                    ]
                },
                {"sizes": ["page_size", "pages", "debug", "sinks", "beside", "shifted"]},
                {"name": "bounds", "holds": "bounds", "optional": True},
                "dtype?",
                {"name": "layout", "holds": "layout", "optional": True},
                {"name": "padding", "holds": "padding", "optional": True},
            ]
        ),
    ),
    config=True,
)
"""The one operation that belongs to no chapter: every kind has it."""

CHAPTER_OF: dict[str, str] = {o.name: chapter for chapter, record in RECORDS.items() for o in record.operations}
"""The chapter an operation belongs to."""

OPERATIONS: dict[str, OperationRecord] = {
    OPEN.name: OPEN,
    **{o.name: o for record in RECORDS.values() for o in record.operations},
}
"""Every operation, chapter by chapter."""

ARGUMENTS: dict[str, dict[str, Argument]] = {
    name: {a.name: a for a in o.arguments} for name, o in OPERATIONS.items()
}
"""The arguments of each operation, by name."""

OF_KIND: dict[str, frozenset[str]] = {
    kind: frozenset((OPEN.name, *(name for name, chapter in CHAPTER_OF.items() if has(kind, chapter, name))))
    for kind in KINDS
}
"""The operations that a cache of each kind has."""


def caches_with(operation: str) -> tuple[str, ...]:
    """Give the kinds of caches of one sequence that have an operation."""
    return tuple(kind for kind in CACHES if operation in OF_KIND[kind])


TAKES_ROWS = tuple(name for name, o in OPERATIONS.items() if o.rows)
"""Operations that take rows."""

TAKES_QUERIES = tuple(name for name, o in OPERATIONS.items() if o.queries)
"""Operations that take queries, in f32; each gives an output."""

NAMED = tuple(dict.fromkeys(o.names for o in OPERATIONS.values() if o.names))
"""The sorts of things that names in a trace stand for."""

Operation = dict[str, Any]
"""`{"op": name, argument: value, ...}`, and `"cache"` where it is not A."""


def unknown(name: Any) -> str:
    """Write the message for an unknown operation, with similar names, if any."""
    alike = get_close_matches(str(name), OPERATIONS, 3)
    hint = f"did you mean {', '.join(alike)}?" if alike else f"there are append and {len(OPERATIONS) - 1} more"
    return f"unknown operation {name!r:.60}; {hint}"


def cache_of(op: Operation) -> str:
    """Give the name of an operation's cache."""
    return str(op.get("cache", "A"))


def argument(op: Operation, name: str) -> Any:
    """Give the value of an argument, or its default."""
    if name in op:
        return op[name]
    return ARGUMENTS[op["op"]][name].default


def overridden(config: Config, op: Operation, *more: str) -> Config:
    """Give the config, changed as the operation says."""
    names = ("batch", "kv_heads", "k_dim", "v_dim", "dtype", *more)
    fields = {n: op[n] for n in names if op.get(n) is not None}
    return config.changed(**fields) if fields else config


def names_used(op: Operation) -> list[str]:
    """Give the names that an operation uses, without those it leaves out."""
    return [op[a] for a in OPERATIONS[op["op"]].uses if op.get(a) is not None]


def numbers_in(text: str) -> list[int]:
    """Give the numbers of an argument that lists some: `2,0,3`, or `empty`."""
    return [] if text == "empty" else [int(number) for number in text.split(",")]


def listed(numbers: Iterable[int]) -> str:
    """Write such an argument."""
    return ",".join(map(str, numbers)) or "empty"


def caches_named(op: Operation) -> set[str]:
    """Give the names of the other caches that an operation is about; `-` in a round stands for none."""
    holding = (a.name for a in OPERATIONS[op["op"]].arguments if a.holds in ("layers", "other", "others"))
    return {letter for name in holding for letter in op.get(name, "")} - {"-"}


ALWAYS_NEEDS: dict[str, frozenset[str]] = {
    name: frozenset((*o.needs, *({CHAPTER_OF.get(name, KINDS[0])} - set(KINDS)))) for name, o in OPERATIONS.items()
}
"""The chapters that an operation needs, whatever its arguments, beside that of its cache's kind."""

CAN_NEED: dict[str, tuple[Argument, ...]] = {
    name: tuple(a for a in o.arguments if a.needs) for name, o in OPERATIONS.items()
}
"""The arguments of an operation that need a chapter if they are given."""


def chapters_of(op: Operation) -> frozenset[str]:
    """Give the chapters an operation needs beside that of its cache's kind."""
    given = (a.needs for a in CAN_NEED[op["op"]] if op.get(a.name, a.default) != a.default)
    return ALWAYS_NEEDS[op["op"]].union(given)
