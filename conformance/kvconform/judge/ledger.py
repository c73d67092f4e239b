"""What one step owes to the next, with either oracle: plans that come true, and costs within bounds.

Both are judged by what the adapter said and did before, because its capacity may differ from the oracle's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from kvconform.judge.storage import Difference
from kvspec import costs
from kvspec.contract import Description
from kvspec.costs import Case, Layer
from kvspec.geometry import Config
from kvspec.operations.table import (
    ON_ROUNDS,
    OPEN,
    OPERATIONS,
    RUN,
    Operation,
    argument,
    cache_of,
    caches_named,
    last_of,
    names_used,
)
from kvspec.registry import CACHES, LETTERS
from kvspec.session.step import Step


class Spent(Struct, frozen=True):
    """What one operation cost: on which kind of cache, under which condition, and the counts."""

    kind: str
    op: str
    when: str
    counts: Mapping[str, int]


class Found(Struct):
    """What judging one step found: the clauses it exercised beside the oracle's, and the differences."""

    cites: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    spent: Spent | None = None

    def hold(self, clause: str, what: str, wrong: str) -> None:
        """Note that a clause was exercised, and the problem, if there is one."""
        self.cites.append(clause)
        if wrong:
            self.differences.append(Difference(what, wrong, clause))


class Accounts:
    """The books of one trace: what each cache said last, what was planned, what snapshots hold."""

    def __init__(self, adapter: Description, level: str) -> None:
        self._configs: dict[str, Config] = {}
        seen = adapter.observed()
        self._mem, self._meter = "held" in seen, "meter" in seen
        self._each = launches_each(adapter)
        self._shares = shares_pages(adapter)
        self._exact = level == "storage"
        self._values: dict[str, dict[str, Any]] = {}
        self._opened: dict[str, int] = {}
        self._planned: dict[str, tuple[int, int]] = {}
        self._saved: dict[str, int] = {}
        self._packed: dict[str, dict[str, int]] = {}
        self._rounds: dict[str, str] = {}
        self._drafted: dict[tuple[str, str], int] = {}
        self._begun: dict[tuple[str, str], Any] = {}
        self._done: dict[str, set[tuple[Any, ...]]] = {}
        self._unseen = set[str]()
        """Caches and names that a run changed unobserved."""

    def open(self, name: str, config: Config, got: Step) -> None:
        """A cache was opened."""
        self._configs[name] = config
        self._values[name] = dict(got.values)
        self._planned.pop(name, None)
        self._done[name] = set()
        if "held" in got.values:
            self._opened[name] = got.values["held"]

    def judge(self, op: Operation, kind: str, config: Config, got: Step) -> Found:
        """Judge one step that ended as the oracle's did, and enter it into the books.

        What a run costs is not judged, nor what follows from how things were before it.
        """
        if op["op"] == RUN.name:
            self._forget(op)
            op = last_of(op)
        found, known = Found(), not self._unseen or self._unseen.isdisjoint(_about(op))
        if self._mem and got.result in ("ok", "refused"):
            for clause, what, wrong in self._memory(op, kind, config, got):
                found.hold(clause, what, wrong)
        if self._meter and known and got.result in ("ok", "refused"):
            self._costs(found, op, kind, config, got)
        if kind == LETTERS["PAGE"] and "free" in got.values:
            found.cites.append("PAGE-17")
            found.differences += self._unsound(config, got)
        self._enter(op, config, got)
        if op["op"] not in ON_ROUNDS:  # operations on a round say nothing about cache A
            self._unseen.discard(cache_of(op))
        return found

    def _unsound(self, config: Config, got: Step) -> Iterator[Difference]:
        """Where a paged cache's own words disagree."""
        from kvconform.judge.page_tables import unsound  # most caches have no pages

        for what, why in unsound(config, got.values, self._shares):
            yield Difference(what, why, "PAGE-17")

    def _forget(self, run: Operation) -> None:
        """Forget what was known of the caches and names of a run."""
        for part in run["ops"]:
            letters = {cache_of(part), *caches_named(part)}
            for letter in letters:
                self._values.pop(letter, None)
                self._planned.pop(letter, None)
            if part["op"] == OPEN.name:
                self._opened.pop(cache_of(part), None)
                self._done.pop(cache_of(part), None)
            made = (part[a] for a in OPERATIONS[part["op"]].makes)
            self._unseen |= {*letters, *made, *names_used(part)}

    def _memory(self, op: Operation, kind: str, config: Config, got: Step) -> Iterator[tuple[str, str, str]]:
        """MEM's clauses on what is held from step to step: clause, observable, and what is wrong."""
        name, held = cache_of(op), got.values.get("held")
        if held is None and op["op"] != "plan":
            return
        before = self._values.get(name, {}).get("held")
        if op["op"] == "plan" and got.result == "ok":
            yield from _plan_alone(op["n"], got.values["plan"], before)
            if self._exact and kind in PLANNED:
                offset = self._values.get(name, {}).get("offset")
                for wrong in _beyond(op["n"], got.values["plan"], before, offset, config):
                    yield PLANNED[kind], "plan", wrong
        if held is None or op["op"] == OPEN.name:
            return
        if got.result == "refused":
            yield "MEM-9", "held", _unlike("after a refusal", before, held)
        elif name in self._planned and self._planned[name][0] == _rows(op):
            yield "MEM-6", "held", _unlike("as planned", self._planned[name][1], held)
        elif op["op"] == "free":
            yield "MEM-10", "held", _unlike("as when it was opened", self._opened.get(name), held)
        if self._exact and kind in CACHES:
            beside = config.beside_bytes if got.values["capacity"] else 0
            want = got.values["capacity"] * config.row_bytes + beside
            yield "MEM-1", "held", _unlike("capacity times row", want, held)

    def _costs(self, found: Found, op: Operation, kind: str, config: Config, got: Step) -> None:
        case = self._case(op, kind, config, got)
        cost = costs.cost(case)
        if cost is None:
            return
        meter = got.values.get("meter")
        if meter is None:
            if got.result == "ok":
                found.differences.append(Difference("meter", f"{op['op']}: nothing was counted"))
            return
        cost = cost.each() if self._each else cost
        found.cites += [b.clause for b in cost.bounds] + (["RESIDENCY-12"] if case.resident else [])
        found.differences += [Difference("meter", message, clause) for clause, message in cost.breaches(meter)]
        found.spent = Spent(kind, op["op"], cost.when, meter)

    def _case(self, op: Operation, kind: str, config: Config, got: Step) -> Case:
        name = cache_of(op)
        before = self._values.get(name, {})
        cache = self._layer(op, name, config, got.values)
        sequences = len(before.get("sequences") or got.values.get("sequences") or ())
        again = _same(op) in self._done.get(name, ())
        append = costs.of_chapter(kind).get("append")
        layers = self._layers(op, got)
        arrived = self._packed.get(str(op.get("name")), {})
        return Case(op, kind, cache, got, self._saved, arrived, sequences, layers, again, append, self._shares)

    def _layers(self, op: Operation, got: Step) -> tuple[Layer, ...]:
        """The caches of a whole round."""
        if op["op"] not in ON_ROUNDS:
            return ()
        letters = op.get("layers") or self._rounds.get(str(op.get("name")), "")
        found = []
        for letter in (each for each in letters if each in self._configs):
            after = {k.partition(".")[0]: v for k, v in got.values.items() if k.endswith(f".{letter}")}
            found.append(self._layer(op, letter, self._configs[letter], after))
        return tuple(found)

    def _layer(self, op: Operation, letter: str, config: Config, after: Mapping[str, Any]) -> Layer:
        """A cache as it was; in a round as it was when that began, though a live one may have gone on beside it."""
        values = self._values.get(letter, {})
        if not (self._rounds or self._drafted):
            return Layer(config, values, after)
        which = str(op.get("name")), letter
        begun = {"offset": self._begun[which]} if op["op"] == "draft" and which in self._begun else {}
        return Layer(config, {**values, **begun, "drafted": self._drafted.get(which)}, after)

    def _enter(self, op: Operation, config: Config, got: Step) -> None:
        name = cache_of(op)
        if op["op"] == OPEN.name and got.result == "ok":
            self.open(name, config, got)
            return
        self._configs[name] = config
        if got.result == "ok":
            self._done.setdefault(name, set()).add(_same(op))
        for key, value in got.values.items():
            what, _, other = key.partition(".")
            self._values.setdefault(other or name, {})[what] = value
        self._planned.pop(name, None)
        if op["op"] == "plan" and got.result == "ok":
            self._planned[name] = op["n"], got.values["plan"][0]
        self._enter_round(op, got)
        self._enter_snapshots(op, got)
        self._enter_parcels(op, got)

    def _enter_round(self, op: Operation, got: Step) -> None:
        """Note the layers of a new round, where they stood, and how far drafts have come."""
        if op["op"] == "speculate" and got.result == "ok":
            self._rounds[op["name"]] = op["layers"]
            self._drafted = {k: n for k, n in self._drafted.items() if k[0] != op["name"]}
            self._begun |= {(op["name"], letter): got.values.get(f"offset.{letter}") for letter in op["layers"]}
        if "drafted" in got.values:
            which = op["name"], cache_of(op)
            before = self._drafted.get(which, self._begun.get(which)) or 0
            self._drafted[which] = max(got.values["drafted"], before + op["n"])  # branches stand side by side

    def _enter_snapshots(self, op: Operation, got: Step) -> None:
        """Note the bytes of each snapshot that was made."""
        for what, made in (("snapshot", "name"), ("parent", "parent"), ("child", "child")):
            if what in got.values and made in OPERATIONS[op["op"]].makes:
                self._saved[op[made]] = (got.values[what] or (0, 0, 0))[2]

    def _enter_parcels(self, op: Operation, got: Step) -> None:
        """Note how many rows each layer has in a parcel that was made."""
        if op["op"] == "carry":
            self._packed[op["delivered"]] = self._packed.get(op["name"], {})
        elif op["op"] == "collect":
            both = [self._packed.get(op[part], {}) for part in ("first", "second")]
            found = {layer: max(rows.get(layer, 0) for rows in both) for layer in {**both[0], **both[1]}}
            self._packed[op["name"]] = found
        elif "brings" in got.values:
            spans = {name.partition(".")[2]: s for name, s in got.values.items() if name.startswith("spans")}
            self._packed[op["name"]] = {layer: sum(s[1::2]) - sum(s[::2]) for layer, s in spans.items()}


def _about(op: Operation) -> list[str]:
    """The caches and the names that an operation is about."""
    return [cache_of(op), *names_used(op), *caches_named(op)]


def launches_each(adapter: Description) -> bool:
    """Whether the adapter declares a launch for keys and another for values."""
    claim = adapter.chapters.get(LETTERS["RESIDENCY"])
    return claim is not None and claim.dialect("launches") == "each"


def shares_pages(adapter: Description) -> bool:
    """Whether the adapter declares that sequences share pages of equal rows."""
    claim = adapter.chapters.get(LETTERS["PAGE"])
    return claim is not None and claim.dialect("shares") != "forks"


ALIKE = (
    "op",
    "n",
    "heads",
    "splits",
    "rope",
    "scale",
    "softcap",
    "head_sinks",
    "cuts",
    "resident",
    "into",
    "layer",
)
"""What operations have in common that need the same scratch space."""


def _same(op: Operation) -> tuple[Any, ...]:
    return tuple(map(op.get, ALIKE))


def _rows(op: Operation) -> int | None:
    """Rows that an operation appends, where that is what plans are about."""
    whole = op["op"] == "append" and op.get("layer") is None
    fits = all(op.get(a) is None for a in ("values", "batch", "layers", "kv_heads", "k_dim", "v_dim", "dtype"))
    if whole and fits:
        return int(op["n"])
    return int(argument(op, "n")) if op["op"] == "copy" else None


def _plan_alone(n: int, plan: list[int], held: int | None) -> Iterator[tuple[str, str, str]]:
    """Check a plan by itself: the most is no less than the bytes held before and after."""
    after, most = plan
    least = max(after, held or 0)
    yield "MEM-7", "plan", "" if most >= least else f"plan: at most {most}, yet {least} are held before or after it"
    if n == 0 and held is not None:
        yield "MEM-8", "plan", _unlike("for no rows", [held, held], plan)


PLANNED = {LETTERS["GROW"]: "MEM-2", LETTERS["RING"]: "MEM-3"}
"""The clause on plans of each kind that moves to new storage."""


def _beyond(n: int, plan: list[int], held: int | None, offset: int | None, config: Config) -> Iterator[str]:
    """Check a plan where nothing says how capacity grows. The new storage must hold the rows that will be there.
    At most the old and the new storage may exist together."""
    after, most = plan
    if offset is not None:
        old = offset if config.window is None else min(offset, config.window - 1)
        least = (old + n) * config.row_bytes if n else 0
        yield "" if after >= least else f"plan: {after} after {n} rows, which take {least} with those there are"
    if held is not None:
        enough = most <= held + after
        yield "" if enough else f"plan: at most {most}, more than {held} held before and {after} after it"


def _unlike(what: str, want: Any, found: Any) -> str:
    return "" if want is None or want == found else f"held {what}: expected {want}, found {found}"
