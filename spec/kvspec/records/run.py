"""The run record: one JSON document that holds a whole run. Every report is rendered from it."""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar, Literal, get_args

from msgspec import UNSET, Meta, UnsetType, field

from kvspec.records.document import Count, Document, Part, Seconds, Version

VERSION = 2

VerdictName = Literal[
    "PASS",
    "PARTLY_OBSERVED",
    "BY_ADAPTER",
    "FAIL",
    "NOT_CLAIMED",
    "XFAIL",
    "XPASS",
    "CRASH",
    "HANG",
    "OOM",
    "PROTOCOL",
    "HARNESS_ERROR",
    "NOT_RUN",
]
"""The verdict on a clause. There is no plain "skip"."""

VERDICTS: tuple[VerdictName, ...] = get_args(VerdictName)

Cause = Literal[
    "wrong row",
    "alias",
    "wrong length",
    "changed though refused",
    "refused though owed",
    "taken though refused",
    "wrong answer",
    "claimed, not there",
]
"""What went wrong in a failure, the worst first: a query sees what it must not, or misses what it must; ... A
wrong answer is one of `can_rewind`: where rewinds are wrong too, it follows from them."""

CAUSES: tuple[Cause, ...] = get_args(Cause)

HELD: tuple[VerdictName, ...] = ("PASS", "PARTLY_OBSERVED", "BY_ADAPTER")
"""Verdicts without a difference. PASS: all in which a breach would show was looked at. PARTLY_OBSERVED: some of it
was not. BY_ADAPTER: the adapter made it up for its engine."""

BROKEN: tuple[VerdictName, ...] = ("FAIL", "CRASH", "HANG", "OOM", "PROTOCOL", "XPASS")
"""Verdicts that mean the adapter does not conform as declared: exit status 1."""

SOURCES = ("example", "cover", "law", "explore", "blind", "alike", "inputs", "geometry", "walk", "large", "log")
"""Where traces come from."""

Number = int | None | UnsetType
Rows = list[str] | None | UnsetType
"""Rows by their letters. "?" is illegible, "NaN" unwritten. None where there are no rows at all."""


class Observation(Part):
    """What could be seen after one step: compact, for drawing. Rows are named by letters; see `kvspec.rows`."""

    result: str
    """ok, or refused CACHE-7, and so on."""
    offset: Number = UNSET
    buffered: Number = UNSET
    capacity: Number = UNSET
    slots: Rows = UNSET
    """The row in each slot of the state. "?" is illegible, "NaN" unwritten. Null where there is no state."""
    history: Rows = UNSET
    """The rows of the history, in its own order."""
    queries: list[list[str]] | UnsetType = UNSET
    """For each query of the last append, the rows it sees."""
    view: Rows = UNSET
    layers: dict[str, list[str] | None] | UnsetType = UNSET
    """Rows of one of several, by what it is: `layer 0`, `saved layer 0`, `layer 0, sequence 1`, `cache B`."""
    other: dict[str, Any] | UnsetType = UNSET
    """Anything else: can, snapshot, parent, child, bytes, drafted, lengths, sequences, moved, held, plan, ..."""


class StepRecord(Part):
    """One operation of a trace, as it is drawn."""

    do: str
    """The operation in the compact notation."""
    clauses: list[str]
    """Clauses this step exercised."""
    expected: Observation
    found: Observation
    differs: list[str]
    """Fields in which found differs from expected, and the values of `other` that do; empty for all but the last
    step."""


class Fits(Part):
    """Counts over the failing trace and its neighbours on which the adapter differs from the spec. `of` is how
    many there are, and a known bug answers `traces` of them exactly as the adapter did. On the rest the adapter
    took what must be refused, which is another failure. Traces on which neither differs do not count."""

    traces: Count
    of: Count


class KnownBug(Part):
    """A known bug that answers as the adapter did."""

    id: str
    """The mutant's: RING-07/CutAtTheOffset, stale-cursor/RingStaleCursor."""
    says: str
    """What it does, in a sentence."""
    anomaly: str
    """The kind of anomaly: an id of the appendix on anomalies, empty where it is none of them."""
    link: str
    """Where the bug was seen; empty where nobody reported it."""
    clauses: list[str]
    """Clauses that it breaks."""
    fits: Fits


class Predecessor(Part):
    """A trace that has to run first, in the same process, for another one to fail."""

    words: str
    """The trace in the compact notation, in a line."""
    trace: dict[str, Any]
    """The trace: see kvconform:trace."""


class Failure(Part):
    """A trace on which the adapter differed, as short as could be made."""

    verdict: VerdictName
    """FAIL, CRASH, HANG, OOM, PROTOCOL."""
    clauses: list[str]
    """Clauses that the differing step fails, and those of the operation that put back the rows it reads wrongly."""
    implicated: list[str]
    """Clauses exercised by earlier steps of the trace."""
    source: str
    """Where the trace came from: example, cover, law, explore, log."""
    test: str
    oracle: str
    """reference or list model."""
    field: str
    """What differed: offset, state, history, view, mask, capacity, ..."""
    message: str
    """What a person would say: slot 3, head 1 holds row q; expected row z."""
    words: str
    """The trace in the compact notation, in a line."""
    trace: dict[str, Any]
    """The trace: see kvconform:trace."""
    steps: list[StepRecord]
    deterministic: bool
    """False where the same trace passed when it was run again."""
    cause: Cause = "wrong row"
    known: dict[str, str] = {}  # noqa: RUF012  (msgspec copies it)
    """Clauses whose known deviation this failure is, each with the reason."""
    diagnosis: list[KnownBug] | UnsetType = UNSET
    """Known bugs that answer as the adapter did, the likeliest first; empty where none does. Absent where nobody
    looked."""
    entry: str | UnsetType = UNSET
    """The entry of `kvconform.toml` that would make this failure known; absent where it is known, or none would."""
    after: Predecessor | UnsetType = UNSET
    """The trace after which this one fails; absent where it fails by itself, in a new process."""

    @property
    def expected(self) -> bool:
        """Whether known deviations explain all of it."""
        return bool(self.clauses) and set(self.clauses) <= set(self.known)

    def key(self) -> str:
        """What its diagnosis is kept under: its trace as text."""
        return json.dumps(self.trace, sort_keys=True)


class ClauseRecord(Part):
    """The verdict on one clause."""

    id: str
    chapter: str
    """The chapter the clause stands in."""
    level: str
    """The clause's own level."""
    verdict: VerdictName
    judged_at: str | None
    """The level it was judged at; null where it was not judged."""
    oracle: str | None
    """reference or list model; null where it was not judged."""
    tests: list[str]
    """The tests that exercised it."""
    exercised: dict[str, Count]
    """Steps that exercised it, by source."""
    differed: Count
    """Traces whose differing step exercised it."""
    suspicion: Annotated[float, Meta(ge=0, le=1)]
    """0..1: how well differing and agreeing traces single this clause out (Ochiai)."""
    reason: str
    """Why the verdict is not PASS; empty otherwise."""
    trace: dict[str, Any] | None
    """The shortest trace on which it failed."""
    text: str
    """The clause's text."""
    ended_early: dict[str, list[str]] = {}  # noqa: RUF012  (msgspec copies it)
    """Its own examples and laws that ended in a failure of other clauses, each with these."""
    kinds: list[str] = []  # noqa: RUF012  (msgspec copies it)
    """The kinds of cache on which a general clause was judged; empty for other clauses."""


class Coverage(Part):
    """How much one source exercised."""

    traces: Count
    operations: Count
    states: Count
    transitions: Count
    pairs: dict[str, Count]
    """Pairs of consecutive operations, "append rewind", and how often."""
    sizes: dict[str, list[int]] = field(default_factory=dict)
    """The boundaries of each size that large traces met, and traces at real geometry."""


class Residency(Part):
    """What one operation cost on a device, of all the times it was metered under one condition."""

    kind: str
    """The kind of cache."""
    op: str
    when: str
    """The condition: resident, within the capacity; empty where there is only one."""
    steps: Annotated[int, Meta(ge=1)]
    least: dict[str, Count]
    """The smallest of each count of the meter."""
    most: dict[str, Count]
    """The largest of each count."""


ByVerdict = Annotated[dict[str, Count], Meta(extra_json_schema={"propertyNames": {"enum": list(VERDICTS)}})]


class Record(Document, tag_field="kvrecord", tag=VERSION, omit_defaults=True):
    """A whole run."""

    NAME: ClassVar = "a run record"
    WRITTEN_BY: ClassVar = "kvconform run --report DIR"

    spec: Version
    """Version and hash of the chapters."""
    suite: Version
    """Version and hash of the suite."""
    vectors: dict[str, Any]
    """Version and hash of the vectors, and how many there are."""
    started: str
    """When, ISO 8601."""
    seconds: Seconds
    partial: bool
    """Whether the run was cut short."""
    partial_reason: str
    """Why it was; empty where it was not."""
    machine: dict[str, Any]
    """system, cpu, cores, memory_bytes, python, packages."""
    command: list[str]
    """How the adapter was named on the command line: its name, or `--` and a command."""
    adapter: dict[str, Any]
    """The adapter's description of itself: see kvconform:describe."""
    selection: dict[str, Any]
    """chapters, clauses, traces, seed; and the clauses that are known to break, each with the reason."""
    exit_status: int
    summary: ByVerdict
    """Clauses by verdict."""
    clauses: list[ClauseRecord]
    failures: list[Failure]
    """What to look at first is the first; each is the shortest for some clause."""
    coverage: dict[str, Coverage]
    """By source and chapter: "cover ring"."""
    problems: list[str]
    """What went wrong in the harness, or with the adapter as a whole."""
    memory: dict[str, Count]
    """Peak resident bytes of the largest process of each sort: parent (the judge), child (the worker). And
    restarts: how often the worker was started anew, because its memory had grown."""
    shut_out: dict[str, str] = field(default_factory=dict)
    """Checks of claimed chapters of which the claims left nothing to judge, each with what it takes: a chapter, an
    ability, or a size beyond the declared limits."""
    residency: list[Residency] = field(default_factory=list)
    """What operations cost, where the adapter has a meter."""

    @property
    def grew(self) -> str:
        """Say how often the worker was started anew, because its memory had grown; empty if it never was."""
        times = self.memory.get("restarts", 0)
        often = "once" if times == 1 else f"{times} times"
        why = "because its memory had grown; does the engine keep what its caches held?"
        return f"the worker was started anew {often}, {why}" if times else ""

    @property
    def unexplained(self) -> list[Failure]:
        """The failures that known deviations do not explain."""
        return [f for f in self.failures if not f.expected]
