"""The frames of a trace: what a drawing shows. `svg` and `text` draw the same frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import UNSET

from kvreports.drawing.row_fates import Alive, fates
from kvreports.safe_text import line, plain, shortened
from kvspec.records.run import Observation, Rows, StepRecord

STEPS = 40
"""Steps that a drawing shows. A longer trace is cut to the first few and the last."""
CELLS = 32
"""Slots of a strip that a drawing shows. A longer strip is cut to its ends and the slots that differ."""
QUERIES = 12
"""Queries of one append a drawing shows."""
LAYERS = 12
"""Layers of a step that a drawing shows. More are cut to the first and those that differ."""
NAMES = {"?": "illegible", "NaN": "unwritten", ".": "empty"}


@dataclass(frozen=True)
class Cell:
    """One slot. `kind`: row, dead, unwritten, empty (zeros), illegible, missing, hidden (from a query), gap."""

    text: str
    kind: str = "row"
    index: int | None = None
    position: int | None = None
    differs: bool = False
    seam: bool = False
    """The oldest row of a wrapped ring stands here: the slot before holds the newest."""


@dataclass(frozen=True)
class Strip:
    """One line of slots: its label, its side (expected, found, or both), its cells, the number left out."""

    what: str
    who: str
    cells: list[Cell]
    note: str = ""
    differs: bool = False


@dataclass(frozen=True)
class Fact:
    """A number or word beside the slots; `found` is None if it equals `expected`."""

    name: str
    expected: str
    found: str | None = None


@dataclass(frozen=True)
class Frame:
    """One step. `number` counts from 1; with 0 the frame replaces steps that are not drawn, and `do` says so."""

    number: int
    do: str
    clauses: list[str] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    strips: list[Strip] = field(default_factory=list)
    differs: bool = False


def frames(steps: Sequence[StepRecord]) -> list[Frame]:
    """The frames of a trace, long ones shortened with a note of how much."""
    alive, shown = fates(steps), [*range(len(steps))]
    if len(steps) > STEPS:
        shown = [*shown[:4], -1, *shown[4 - STEPS :]]
    hidden = len(steps) - STEPS
    return [_frame(i, steps[i], alive[i]) if i >= 0 else Frame(0, f"{hidden:,} steps not drawn") for i in shown]


def _frame(i: int, step: StepRecord, alive: Alive) -> Frame:
    do = shortened(line(plain(step.do)), 120)
    clauses = [plain(c) for c in step.clauses[:24]]
    strips = [s for what in ("slots", "history", "view") for s in _strips(what, step, alive)]
    return Frame(i + 1, do, clauses, _facts(step), strips + _layers(step) + _queries(step), bool(step.differs))


def _facts(step: StepRecord) -> list[Fact]:
    expected, found = step.expected, step.found
    out = [
        _fact(n, n, getattr(expected, n), getattr(found, n), step)
        for n in ("result", "offset", "buffered", "capacity")
    ]
    for name in list({**(expected.other or {}), **(found.other or {})})[:8]:
        wanted, got = ((seen.other or {}).get(name, UNSET) for seen in (expected, found))
        out.append(_fact(name.replace(".", " "), name, wanted, got, step))
    return [f for f in out if f is not None]


def _fact(label: str, name: str, expected: Any, found: Any, step: StepRecord) -> Fact | None:
    """The expected frame; if there is none, the found one."""
    differs, value = name in step.differs, found if expected is UNSET else expected
    if not differs and (value in (None, UNSET) or (name == "result" and value == "ok")):
        return None
    return Fact(plain(label), _value(value), _value(found) if differs else None)


def _value(value: Any) -> str:
    if value in (None, UNSET) or isinstance(value, bool):
        return {None: "nothing", UNSET: "nothing", True: "yes", False: "no"}[value]
    if isinstance(value, dict):
        counts = ", ".join(f"{str(name).replace('_', ' ')} {n}" for name, n in value.items() if n)
        return shortened(line(plain(counts)) or "nothing", 160)
    return shortened(line(plain(str(value))), 160)


def _strips(what: str, step: StepRecord, alive: Alive) -> list[Strip]:
    expected, found = getattr(step.expected, what), step.found.get(what)
    differs = what in step.differs or (what == "slots" and "state" in step.differs)
    if what == "history" and _as_slots(step, differs):
        return []
    if expected in (None, UNSET) and found is None:
        return []
    return _pair(what, expected, found, differs, step, alive)


def _layers(step: StepRecord) -> list[Strip]:
    """Strips for one of several: a store's layers, the caches of a round."""
    expected, found = (seen.layers or {} for seen in (step.expected, step.found))
    names = [*dict.fromkeys([*expected, *found])]
    differing = [n for n in expected if "layers" in step.differs and expected[n] != found.get(n)]
    shown = [n for i, n in enumerate(names) if i < LAYERS or n in differing[:LAYERS]]
    pairs = [(n, expected.get(n, UNSET), found.get(n)) for n in shown]
    strips = [s for n, want, got in pairs for s in _pair(_named(n), want, got, n in differing, step, None)]
    more = len(names) - len(shown)
    return strips + ([Strip("layers", "both", [], f"{more:,} more not drawn")] if more else [])


def _named(layer: str) -> str:
    """A layer's name as it fits beside a strip."""
    return shortened(line(plain(layer)).replace("sequence", "seq"), 20)


def _pair(
    what: str,
    expected: Rows,
    found: list[str] | None,
    differs: bool,
    step: StepRecord,
    alive: Alive,
) -> list[Strip]:
    """One strip if found agrees with expected, or if one of them is missing; else two."""
    spare = [_spare(seen) if what == "slots" else "" for seen in (step.expected, step.found)]
    if expected is UNSET:
        return [_strip(what, "found", found, [], alive, spare[1])]
    if expected == found or (found is None and not differs):
        who = "both" if expected == found else "expected"
        return [_strip(what, who, expected, [], alive, spare[0])]
    marked = _marked(expected or [], found or [], alive) if differs else []
    return [
        _strip(what, "expected", expected, marked, alive, spare[0]),
        _strip(what, "found", found, marked, alive, spare[1]),
    ]


def _as_slots(step: StepRecord, differs: bool) -> bool:
    """Whether the history shows only what the slots show already."""
    expected, found = step.expected, step.found
    if expected.get("slots") is None:
        return False
    same = all(seen.get("history") == seen.get("slots") for seen in (expected, found))
    return same or not differs


def _spare(seen: Observation) -> str:
    slots, capacity = seen.get("slots"), seen.get("capacity")
    if slots is None or capacity is None or capacity <= len(slots):
        return ""
    return f"+{capacity - len(slots):,} spare"


def _marked(expected: Sequence[str], found: Sequence[str], alive: Alive) -> list[int]:
    """Where they differ. A slot with a dead expected row is marked only if no other slot is."""
    length = max(len(expected), len(found))
    unequal = [i for i in range(length) if _at(expected, i) != _at(found, i)]
    compared = {"", *(expected if alive is None else alive)}
    live = [i for i in unequal if _at(expected, i) in compared]
    return live or unequal


def _strip(what: str, who: str, rows: list[str] | None, marked: list[int], alive: Alive, spare: str) -> Strip:
    if rows is None:
        return Strip(what, who, [], "nothing", bool(marked))
    where = {r: p for p, r in enumerate(alive)} if alive is not None else None
    seam = _seam(rows, where or {}) if what == "slots" else -1
    length, differing = max(len(rows), *(i + 1 for i in marked), 0), set(marked)
    cells = [
        Cell(f"{-i:,}", "gap") if i < 0 else _cell(_at(rows, i), i, where, i in differing, i == seam)
        for i in _kept(length, marked)
    ]
    return Strip(what, who, cells, spare or ("" if cells else "empty"), bool(marked))


def _cell(row: str, i: int, where: dict[str, int] | None, differs: bool, seam: bool) -> Cell:
    position = where.get(row) if where is not None else None
    return Cell(_short(row), _kind(row, where), i, position, differs, seam)


def _at(rows: Sequence[str], i: int) -> str:
    return rows[i] if i < len(rows) else ""


def _short(row: str) -> str:
    return shortened(line(plain(row)), 6).partition(" ")[0]


def _kind(row: str, where: dict[str, int] | None) -> str:
    if row == "":
        return "missing"
    if row in NAMES:
        return NAMES[row]
    return "row" if where is None or row in where else "dead"


def _seam(rows: Sequence[str], where: dict[str, int]) -> int:
    """The slot where positions start again; -1 if they do not, or do so more than once."""
    places = [where.get(r, -1) for r in rows]
    drops = [i for i in range(1, len(places)) if 0 <= places[i] < places[i - 1]]
    return drops[0] if len(drops) == 1 else -1


def _kept(length: int, marked: Sequence[int]) -> list[int]:
    """Indices to draw; -n stands for n cells left out."""
    if length <= CELLS:
        return [*range(length)]
    near = {j for i in marked[:6] for j in (i - 1, i, i + 1) if 0 <= j < length}
    kept = sorted({*range(8), *range(length - 4, length), *near})
    out: list[int] = []
    for i in kept:
        gap = i - (out[-1] if out else -1) - 1
        if gap:
            out.append(-gap)
        out.append(i)
    return out


def _queries(step: StepRecord) -> list[Strip]:
    """A strip for each query: the rows it sees in their columns, the others hidden."""
    expected, found = step.expected.get("queries"), step.found.get("queries")
    differs = bool({"queries", "mask", "history"} & set(step.differs)) and found is not None and expected != found
    if not expected and not (differs and found):
        return []
    out: list[Strip] = []
    columns = _columns(step)
    for q in range(max(len(expected or []), len(found or []) if differs else 0)):
        if q == QUERIES:
            more = len(expected or found or []) - q
            return [*out, Strip("sees", "both", [], f"{more:,} more queries not drawn")]
        out += _query(q, expected or [], found or [], columns, differs)
    return out


def _query(
    q: int, expected: list[list[str]], found: list[list[str]], columns: list[str], differs: bool
) -> list[Strip]:
    wanted, got = (set(x[q]) if q < len(x) else None for x in (expected, found))
    if not differs or wanted == got:
        return [_sees(q, "both" if wanted == got else "expected", wanted, wanted, columns)]
    return [_sees(q, "expected", wanted, got, columns), _sees(q, "found", got, wanted, columns)]


def _columns(step: StepRecord) -> list[str]:
    """Every row a query could see, in the order of the history."""
    rows = dict.fromkeys(step.expected.history or [])
    for seen in (step.expected, step.found):
        for query in seen.queries or []:
            rows |= dict.fromkeys(query)
    return [*rows]


def _sees(q: int, who: str, rows: set[str] | None, other: set[str] | None, columns: list[str]) -> Strip:
    name = f"query {q}"
    if rows is None:
        return Strip(name, who, [], "no such query", True)
    marked = [i for i, r in enumerate(columns) if (r in rows) != (r in (other or set()))]
    differing = set(marked)
    cells = [
        Cell(f"{-i:,}", "gap") if i < 0 else _seen_cell(columns[i], columns[i] in rows, i in differing)
        for i in _kept(len(columns), marked)
    ]
    return Strip(name, who, cells, "" if rows else "sees nothing", bool(marked))


def _seen_cell(row: str, sees: bool, differs: bool) -> Cell:
    kind = NAMES.get(row, "row") if sees else "hidden"
    return Cell(_short(row) if sees else "·", kind, None, None, differs)
