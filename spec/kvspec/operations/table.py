"""The operations a trace may hold: one table for the trace parser, the notation, the schema and the wire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from kvspec.chapters.record import Argument, OperationRecord
from kvspec.errors import NotWhole
from kvspec.geometry import OWN, OWN_SIZES, Config
from kvspec.outside import did_you_mean
from kvspec.registry import CACHES, KINDS, RECORDS, arguments, has

OPEN = OperationRecord(
    "open",
    "Open another cache, or one of this name afresh. Sizes may be out of range on purpose.",
    (
        Argument("kind", "kind", default=None, kinds=KINDS),
        *arguments(
            [
                {"sizes": ["step", "batch", "kv_heads", "k_dim", "v_dim", *OWN_SIZES]},
                "dtype?",
                *({"name": name, "holds": name, "optional": True} for name in OWN if name not in OWN_SIZES),
            ]
        ),
    ),
    config=True,
)
"""Opens a cache. It belongs to no chapter: every kind has it."""

RUN = OperationRecord(
    "run",
    "Do these operations `times` times, unobserved before the last one; then observe as after that one.",
    (Argument("times", low=1, high=1 << 16), Argument("ops", holds="operations")),
)
"""Operations done unobserved. It belongs to no chapter: each of its operations is of its own."""

CHAPTER_OF: dict[str, str] = {o.name: chapter for chapter, record in RECORDS.items() for o in record.operations}
"""The chapter an operation belongs to."""

OPERATIONS: dict[str, OperationRecord] = {
    OPEN.name: OPEN,
    RUN.name: RUN,
    **{o.name: o for record in RECORDS.values() for o in record.operations},
}
"""Every operation, chapter by chapter."""

ARGUMENTS: dict[str, dict[str, Argument]] = {
    name: {a.name: a for a in o.arguments} for name, o in OPERATIONS.items()
}
"""The arguments of each operation, by name."""

OF_ALL = (OPEN.name, RUN.name)
"""The operations that every kind has."""

OF_KIND: dict[str, frozenset[str]] = {
    kind: frozenset((*OF_ALL, *(name for name, chapter in CHAPTER_OF.items() if has(kind, chapter, name))))
    for kind in KINDS
}
"""The operations that a cache of each kind has."""


def caches_with(operation: str) -> tuple[str, ...]:
    """Give the kinds of caches of one sequence that have an operation. Raises NotWhole where there is none such."""
    if operation not in OPERATIONS:
        raise NotWhole(f"kinds with {operation!r} are asked for, which is no operation")
    return tuple(kind for kind in CACHES if operation in OF_KIND[kind])


TAKES_ROWS = tuple(name for name, o in OPERATIONS.items() if o.rows)
"""Operations that take rows."""

TAKES_QUERIES = tuple(name for name, o in OPERATIONS.items() if o.queries)
"""Operations that take queries, in f32; each gives an output."""

ON_ROUNDS = ("speculate", "commit", "choose", "abandon")
"""Operations on a whole round of drafts. All its caches are observed, each under its letter."""

OF_REQUESTS = ("request", "compute", "answer", "propose")
"""Operations that take rows of a request."""

CHANGE_REQUESTS = (*OF_REQUESTS, "accept", "finish", "abort")
"""The operations after which a request is another."""

NAMED = tuple(dict.fromkeys(o.names for o in OPERATIONS.values() if o.names))
"""The sorts of things that names in a trace stand for."""

Operation = dict[str, Any]
"""`{"op": name, argument: value, ...}`, and `"cache"` where it is not A."""


def unknown(name: Any) -> str:
    """Write the message for an unknown operation, with similar names, if any."""
    hint = did_you_mean(name, OPERATIONS) or f"; there are append and {len(OPERATIONS) - 1} more"
    return f"unknown operation {name!r:.60}{hint}"


def parts_of(op: Operation) -> Sequence[Operation]:
    """Give the operations of a run, once each; any other operation alone."""
    parts: Sequence[Operation] = op["ops"] if op["op"] == RUN.name else (op,)
    return parts


def each_of(op: Operation) -> list[Operation]:
    """Give the operations of a run, as often as they are done; any other operation alone."""
    return [*parts_of(op)] * (op["times"] if op["op"] == RUN.name else 1)


def last_of(op: Operation) -> Operation:
    """Give the operation after which a run is observed, which is its last one. Give any other operation itself."""
    return parts_of(op)[-1]


def length_of(op: Mapping[str, Any]) -> int:
    """Count the operations that one operation of a trace stands for."""
    return op["times"] * len(op["ops"]) if op.get("op") == RUN.name else 1


def cache_of(op: Operation) -> str:
    """Give the name of an operation's cache."""
    name: str = (op["ops"][-1] if "ops" in op else op).get("cache", "A")
    return name


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
    """Give the names that an operation uses, without those it leaves out, and those that a run makes itself."""
    if op["op"] in NAMELESS:
        return []
    used, made = list[str](), set[str]()
    for part in parts_of(op):
        record = OPERATIONS[part["op"]]
        if record.names:
            used += [part[a] for a in record.uses if part.get(a) is not None and part[a] not in made]
            made |= {part[a] for a in record.makes}
    return used


def takes_rows(op: Operation) -> bool:
    """Tell whether an operation, or one of a run, takes one row or more."""
    return any(_takes_rows(part) for part in parts_of(op))


def _takes_rows(op: Operation) -> bool:
    some = any(numbers_in(op["lengths"])) if op.get("lengths") else op.get("n") != 0
    return OPERATIONS[op["op"]].rows and some


def numbers_in(text: str) -> list[int]:
    """Give the numbers of an argument that lists some: `2,0,3`, or `empty`."""
    return [] if text == "empty" else [int(number) for number in text.split(",")]


def positions_in(text: str) -> list[int]:
    """Give the positions that such an argument names: those of `0,4-9,12-96/3`, in this order."""
    return [] if text == "empty" else [p for some in text.split(",") for p in _some(some)]


def _some(text: str) -> Sequence[int]:
    """Give a position, or those from one to another, the last included where a step meets it."""
    first, dash, rest = text.rpartition("-")
    if not dash or not first:
        return (int(text),)
    last, _, step = rest.partition("/")
    return range(int(first), int(last) + 1, max(1, int(step or 1)))


def positions_named(positions: Sequence[int]) -> str:
    """Write such an argument: three and more that follow each other as a range, others one by one."""
    found = list[str]()
    for _, run in groupby(enumerate(positions), lambda each: each[1] - each[0]):
        each = [p for _, p in run]
        found += [f"{each[0]}-{each[-1]}"] if len(each) > 2 and each[0] >= 0 else map(str, each)
    return ",".join(found) or "empty"


def listed(numbers: Iterable[int]) -> str:
    """Write such an argument."""
    return ",".join(map(str, numbers)) or "empty"


def caches_named(op: Operation) -> set[str]:
    """Give the names of the other caches that an operation is about; `-` in a round stands for none."""
    if op["op"] in NAMELESS:
        return set()
    each = ((part, a) for part in parts_of(op) for a in NAMING_CACHES[part["op"]])
    return {letter for part, a in each for letter in part.get(a, "") if letter != "-"}


NAMING_CACHES: dict[str, tuple[str, ...]] = {
    name: tuple(a.name for a in o.arguments if a.holds in ("layers", "other", "others"))
    for name, o in OPERATIONS.items()
}
"""The arguments of an operation that name other caches."""

NAMELESS = frozenset(
    name for name, o in OPERATIONS.items() if name != RUN.name and not (o.uses or o.makes or NAMING_CACHES[name])
)
"""The operations that name nothing but their own cache: nearly all that are done, so these are told apart first."""


ALWAYS_NEEDS: dict[str, frozenset[str]] = {
    name: frozenset((*o.needs, *({CHAPTER_OF.get(name, KINDS[0])} - set(KINDS)))) for name, o in OPERATIONS.items()
}
"""The chapters that an operation always needs, in addition to its cache's kind."""

CAN_NEED: dict[str, tuple[Argument, ...]] = {
    name: tuple(a for a in o.arguments if a.needs) for name, o in OPERATIONS.items()
}
"""The arguments of an operation that need a chapter if they are given."""


def chapters_of(op: Operation) -> frozenset[str]:
    """Give the chapters that an operation needs, in addition to its cache's kind."""
    if op["op"] == RUN.name:
        return frozenset().union(*map(chapters_of, op["ops"]))
    always, can = ALWAYS_NEEDS[op["op"]], CAN_NEED[op["op"]]
    return always.union(a.needs for a in can if op.get(a.name, a.default) != a.default) if can else always
