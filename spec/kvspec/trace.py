"""The trace: a kind, a configuration, and a list of operations. Every other document is built from traces.

A trace holds no tensor: rows are made from serials (`kvspec.rows`) when it is replayed. Reading one checks
everything that could make a replay allocate without bound, so a trace file need not be trusted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from kvspec import masks
from kvspec.chapters.record import Argument
from kvspec.errors import BadInput
from kvspec.geometry import FIELDS, SIZES, WORDS, Config
from kvspec.geometry import TEXTS as IN_CONFIGS
from kvspec.operations.arguments import CACHE_NAME, TEXTS, allowed_words
from kvspec.operations.table import (
    ARGUMENTS,
    OF_KIND,
    OPEN,
    OPERATIONS,
    RUN,
    TAKES_QUERIES,
    TAKES_ROWS,
    Operation,
    argument,
    cache_of,
    caches_named,
    chapters_of,
    each_of,
    last_of,
    length_of,
    names_used,
    numbers_in,
    overridden,
    parts_of,
    unknown,
)
from kvspec.operations.texts import tokens_in
from kvspec.outside import did_you_mean, read_json
from kvspec.registry import FIELDS_OF_SOME, KINDS, brought, fields_of, fitted, has, needed
from kvspec.replay_bounds import Budget

VERSION = 2
LARGEST_TRACE = 4096
"""Operations a trace may have."""
LONGEST_RUN = 1 << 17
"""Operations that one run may stand for."""
LARGEST_FILE = 8 << 20
"""Bytes a trace file may have."""


class Outcome(NamedTuple):
    """How an operation ends on the reference, and the clauses that it exercises there."""

    result: str
    clause: str
    cites: tuple[str, ...]
    failed: tuple[int, ...] = ()
    """Of a run: the operations before the last that are not done, by number."""


class Frozen(NamedTuple):
    """What the reference answers to a trace: each outcome, and a hash of all that is compared beside these."""

    digest: str
    outcomes: tuple[Outcome, ...]
    states: tuple[int, ...] = ()
    """The state of the reference's cache A before each operation and at the end, where states are counted: a number
    for each state that the traces of one exploration meet."""


@dataclass(frozen=True)
class Trace:
    """Operations on a cache of `kind` opened with `config`, which the operations call A."""

    kind: str
    config: Config
    ops: tuple[Operation, ...] = ()
    frozen: Frozen | None = field(default=None, compare=False, repr=False)
    """What the reference answers, where that is frozen."""

    def to_json(self) -> dict[str, Any]:
        """Give the JSON document, as written to files and shown in reports."""
        return {
            "kvtrace": VERSION,
            "kind": self.kind,
            "config": self.config.to_json(),
            "ops": [dict(op) for op in self.ops],
        }

    @cached_property
    def used(self) -> frozenset[str]:
        """The chapters that it needs an adapter to have, beside masks observed in passing."""
        each = [part for op in self.ops for part in parts_of(op)]
        opened = [opening(self, op) for op in each if op["op"] == "open"]
        configs = (config for _, config in [(self.kind, self.config), *opened])
        kinds = (kind for kind, _ in opened)
        return frozenset((self.kind,)).union(kinds, *map(chapters_of, each), *map(brought, configs))

    def cut(self, n: int) -> Trace:
        """Keep the first n operations."""
        return Trace(self.kind, self.config, self.ops[:n])

    def one_by_one(self) -> Trace:
        """Write its runs out."""
        return Trace(self.kind, self.config, tuple(part for op in self.ops for part in each_of(op)))


def loads(text: str | bytes, where: str = "trace") -> Trace:
    """Read a trace from the text of a file; messages begin with `where`. Raises BadInput."""
    if len(text) > LARGEST_FILE:
        raise BadInput(f"{where}: {len(text)} bytes; a trace file has at most {LARGEST_FILE}")
    try:
        document = read_json(text)
    except BadInput as e:
        raise BadInput(f"{where}: {e}") from None
    except ValueError as e:
        raise BadInput(
            f"{where}: not complete JSON ({e!s:.200}); was the file cut off, or is it another?"
        ) from None
    except RecursionError:
        raise BadInput(f"{where}: nested too deeply") from None
    return from_json(document, where)


def dumps(trace: Trace) -> str:
    """Write the text of a trace file: one operation a line."""
    head = trace.to_json()
    ops = ",\n  ".join(json.dumps(op) for op in head.pop("ops"))
    return json.dumps(head)[:-1] + ', "ops": [\n  ' + ops + "\n]}\n"


def from_json(document: Any, where: str = "trace") -> Trace:
    """Check a trace document and read it. Raises BadInput that says which operation is wrong and how."""
    if not isinstance(document, dict):
        raise BadInput(f"{where}: expected an object with kvtrace, kind, config, ops; found {document!r:.60}")
    if "kvtrace" not in document:
        raise BadInput(f"{where}: not a trace (no kvtrace); a report keeps traces in its folder `failures`")
    if type(document.get("kvtrace")) is not int or document["kvtrace"] != VERSION:
        raise BadInput(f"{where}: version {document['kvtrace']!r:.20}; this kvconform reads version {VERSION}")
    extra = sorted(set(document) - {"kvtrace", "kind", "config", "ops", "note"})
    if extra:
        raise BadInput(f"{where}: unknown field {extra[0]!r:.60}")
    ops = document.get("ops")
    if not isinstance(ops, list):
        raise BadInput(f"{where}: ops must be a list of at most {LARGEST_TRACE} operations")
    for i, op in enumerate(ops[:LARGEST_TRACE]):
        check_operation(op, f"{where}, operation {i + 1}")
    return from_parts(document.get("kind"), document.get("config"), ops, where)


def from_parts(kind: Any, fields: Any, ops: Sequence[Operation], where: str = "trace") -> Trace:
    """Check a kind, the fields of a config, and operations that were checked each by itself; messages begin with
    `where`. Raises BadInput."""
    if kind not in KINDS:
        meant = did_you_mean(kind, KINDS)
        raise BadInput(f"{where}: kind is {kind!r:.60}; it must be one of {', '.join(KINDS)}{meant}")
    if len(ops) > LARGEST_TRACE:
        raise BadInput(f"{where}: ops must be a list of at most {LARGEST_TRACE} operations")
    trace = Trace(kind, config_from_json(fields, kind, where), tuple(ops))
    check_trace(trace, where)
    return trace


def replayable(trace: Trace) -> bool:
    """Tell whether a trace may be read from a file and replayed: what its operations name is there, its cost is
    bounded."""
    try:
        from_json(trace.to_json())
    except BadInput:
        return False
    return True


def config_from_json(fields: Any, kind: str, where: str = "trace") -> Config:
    """Check the configuration a trace begins with. Raises BadInput that begins with `where`."""
    where = f"{where}, config"
    if not isinstance(fields, dict):
        raise BadInput(f"{where}: expected an object, found {fields!r:.60}")
    unknown = sorted(set(map(str, fields)) - set(FIELDS))
    if unknown:
        hint = did_you_mean(unknown[0], FIELDS) or f"; known: {', '.join(FIELDS)}"
        raise BadInput(f"{where}: unknown field {unknown[0]!r:.60}{hint}")
    for name, most in SIZES.items():
        if name in fields and (type(fields[name]) is not int or not 1 <= fields[name] <= most):
            bounds = f"from 1 to {most}"
            raise BadInput(f"{where}: {name} must be a whole number {bounds}, is {fields[name]!r:.40}")
    for name, words in WORDS.items():
        if name in fields and fields[name] not in words:
            meant = did_you_mean(fields[name], words)
            raise BadInput(f"{where}: {name} must be one of {', '.join(words)}, is {fields[name]!r:.40}{meant}")
    for name, pattern in IN_CONFIGS.items():
        if name in fields and not (isinstance(fields[name], str) and re.fullmatch(pattern, fields[name])):
            raise BadInput(f"{where}: {name} must be a text like {pattern}, is {fields[name]!r:.40}")
    _check_own(fields, kind, where)
    return Config(**fields)


def _check_own(fields: dict[str, Any], kind: str, where: str) -> None:
    """Check that fields of some kinds are given for those kinds and no others."""
    for name in needed(kind):
        if name not in fields:
            raise BadInput(f"{where}: a {kind} needs a {name}")
    for name in FIELDS_OF_SOME:
        if name in fields and name not in fields_of(kind):
            other = next(k for k in KINDS if name in fields_of(k))
            raise BadInput(f"{where}: only a {other} has a {name}; this is a {kind}")


def check_operation(op: Any, where: str) -> None:
    """Check one operation by itself. Raises BadInput."""
    if not isinstance(op, dict) or not isinstance(op.get("op"), str) or op["op"] not in OPERATIONS:
        name = op.get("op") if isinstance(op, dict) else op
        raise BadInput(f"{where}: {unknown(name)}")
    try:
        _check_arguments(op, ARGUMENTS[op["op"]])
    except BadInput as e:
        raise BadInput(f"{where} ({op['op']}): {e}") from None


def _check_arguments(op: Operation, arguments: Mapping[str, Argument]) -> None:
    for name, value in op.items():
        if name in arguments:
            _check_argument(arguments[name], value)
        elif name == "cache":
            if not re.fullmatch(CACHE_NAME, str(value)):
                raise BadInput(f"a cache is named by one capital letter, not {value!r:.20}")
        elif name != "op":
            raise BadInput(f"unknown argument {name!r:.60}{did_you_mean(name, arguments)}")
    for name, a in arguments.items():
        if a.required and name not in op:
            raise BadInput(f"{name} is missing")


def _check_argument(a: Argument, value: Any) -> None:
    if a.holds == "mask":
        masks.from_json(value, a.name)
    elif a.holds == "operations":
        _check_parts(value, a.name)
    elif not _right(a, value):
        bounds = f" from {a.low} to {a.high}" if a.holds == "number" else ""
        meant = did_you_mean(value, allowed_words(a))
        raise BadInput(f"{a.name} must be a {a.holds}{bounds}, is {value!r:.60}{meant}")


def _check_parts(ops: Any, where: str) -> None:
    """Check the operations of a run, each by itself."""
    if not isinstance(ops, list | tuple) or not 1 <= len(ops) <= LARGEST_TRACE:
        raise BadInput(f"{where} must be a list of 1 to {LARGEST_TRACE} operations, is {ops!r:.60}")
    for i, op in enumerate(ops):
        if isinstance(op, dict) and op.get("op") == RUN.name:
            raise BadInput(f"{where}, operation {i + 1}: a run in a run; write its operations out")
        check_operation(op, f"{where}, operation {i + 1}")


def _right(a: Argument, value: Any) -> bool:
    if a.holds == "number":
        return type(value) is int and a.low <= value <= a.high
    if a.holds in TEXTS:
        return isinstance(value, str) and re.fullmatch(TEXTS[a.holds], value) is not None
    return isinstance(value, str) and value in allowed_words(a)


def check_trace(trace: Trace, read_from: str = "trace") -> None:
    """Check the trace as a whole: caches and names exist, the cost is bounded. Raises BadInput that begins with
    `read_from`."""
    caches, names, budget = {"A": (trace.kind, trace.config)}, dict[str, str](), Budget()
    budget.open(*caches["A"], "A", f"{read_from}, config")
    for where, op, budget.seen in _one_by_one(trace.ops, read_from):
        cache = cache_of(op)
        if op["op"] == "open":
            if cache == "A":
                raise BadInput(f"{where}: A is open from the beginning; open B or another")
            caches[cache] = opening(trace, op)
        elif cache not in caches:
            raise BadInput(f"{where}: no cache {cache} was opened")
        elif op["op"] == "init":
            caches[cache] = caches[cache][0], overridden(caches[cache][1], op, *FIELDS_OF_SOME)
        for letter in sorted(caches_named(op) - set(caches)):
            raise BadInput(f"{where}: no cache {letter} was opened")
        if op["op"] not in OF_KIND[caches[cache][0]]:
            its = ", ".join(sorted(OF_KIND[caches[cache][0]]))
            raise BadInput(f"{where}: {cache} is a {caches[cache][0]} cache, which has no {op['op']}; it has {its}")
        _check_names(op, names, where)
        _spend(budget, op, *caches[cache], where)


def _one_by_one(ops: Iterable[Operation], read_from: str) -> Iterator[tuple[str, Operation, bool]]:
    """Give each operation with its place and whether it is observed; those of a run once for each time it is done.
    Raises BadInput for a run that is too long."""
    for i, op in enumerate(ops):
        where, length = f"{read_from}, operation {i + 1}", length_of(op)
        if length > LONGEST_RUN:
            raise BadInput(f"{where} (run): it stands for {length} operations; a run has at most {LONGEST_RUN}")
        for k, part in enumerate(each_of(op), 1):
            yield f"{where} ({part['op']})", part, k == length


def _check_names(op: Operation, names: dict[str, str], where: str) -> None:
    """Check that names used were made before and are of the right sort; names made are new or of that sort."""
    wanted = OPERATIONS[op["op"]].names
    for name in names_used(op):
        if names.get(name) != wanted:
            found = f"it names a {names[name]}" if name in names else "none was made before"
            raise BadInput(f"{where}: no {wanted} named {name!r} was made before; {found}")
    for name in (op[a] for a in OPERATIONS[op["op"]].makes):
        if names.setdefault(name, wanted) != wanted:
            raise BadInput(f"{where}: {name!r} names a {names[name]} already")


def opening(trace: Trace, op: Operation) -> tuple[str, Config]:
    """Give the kind and config of an open operation's cache; the trace's, unless the operation says otherwise."""
    kind = argument(op, "kind") or trace.kind
    return kind, fitted(kind, overridden(trace.config, op, "step", *FIELDS_OF_SOME))


def caches_of(trace: Trace) -> Iterator[Config]:
    """Give for each operation of a trace the config that its cache was opened with; of a run for its last."""
    found = {"A": trace.config}
    for op in trace.ops:
        for part in parts_of(op):
            if part["op"] == OPEN.name:
                found[cache_of(part)] = opening(trace, part)[1]
        yield found.get(cache_of(last_of(op)), trace.config)


def _spend(budget: Budget, op: Operation, kind: str, config: Config, where: str) -> None:
    """Count what an operation may cost. Raises BadInput."""
    name, what = cache_of(op), op["op"]
    if what in ("open", "init"):
        budget.open(kind, config, name, where)
    elif "tokens" in op or what == "compute":
        budget.request(name, config, op.get("sequence"), len(tokens_in(op.get("tokens", "-"))), where)
    elif "lengths" in op:
        budget.append(config, overridden(config.changed(batch=1), {**op, "batch": None}), _cells(op), where)
    elif {"order", "times", "other", "others"} & set(op):
        budget.arrange(name, _sequences(op, budget.sequences), config, where)
    elif what in TAKES_ROWS and what not in ("step", "replay"):
        n = max(op.get("n", 1), op.get("values") or 0, op.get("rows") or 0)
        budget.append(config, overridden(config, op), n, where)
    elif what in ("step", "replay"):
        budget.step(name, config, overridden(config, op), where)
    elif what == "fork":
        budget.share(config, op["n"], where)
    elif what == "gather":
        budget.gather(config, op["table"].count(",") + 1, op["n"], where)
    elif what == "batch":
        budget.batch(name, config, op["m"], argument(op, "most"), where)
    elif what == "mask":
        parts = (p for p in masks.from_json(op["parts"]) if isinstance(p, masks.Explicit))
        budget.look(max((max(p.array.shape[:2], default=1) for p in parts), default=1), where)
    elif OPERATIONS[what].makes:
        budget.save(where)
    if what in TAKES_QUERIES:
        budget.ask(name, op, config, where)


def _cells(op: Operation) -> int:
    """The columns of a padded block, over all its sequences: each may be a row."""
    lengths = numbers_in(op["lengths"])
    longest = max([0, *lengths]) if op.get("n") is None else op["n"]
    columns: int = max(longest, op.get("values") or 0)
    return columns * max(1, len(lengths), op.get("batch") or 0)


def _sequences(op: Operation, known: Mapping[str, int]) -> int:
    """The sequences that a ragged cache has after it was rearranged, by those that caches had before."""
    if "order" in op:
        return len(numbers_in(op["order"]))
    if "times" in op:
        return known.get(cache_of(op), 1) * max(1, int(op["times"]))
    return len(op.get("others", "")) or sum(known.get(other, 1) for other in (cache_of(op), op["other"]))


def used_chapters(trace: Trace) -> frozenset[str]:
    """The chapters a trace needs an adapter to have, beside masks observed in passing."""
    return trace.used


def looked_at(trace: Trace) -> frozenset[str]:
    """The chapters that a trace uses, and masks where these are observed in passing."""
    used = used_chapters(trace)
    masked = any(has(kind, "mask", "mask") for kind in used & set(KINDS))
    return used | {"mask"} if masked else used
