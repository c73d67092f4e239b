"""The run record: one JSON document that tells a whole run. Everything else is rendered from it.

The types below name its fields; `kvspec/schemas/record.json` is the published schema.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

VERSION = 2

VERDICTS = (
    "PASS",
    "FAIL",
    "UNSUPPORTED",
    "XFAIL",
    "XPASS",
    "CRASH",
    "HANG",
    "OOM",
    "PROTOCOL",
    "HARNESS_ERROR",
    "NOT_RUN",
)
"""What can be said of a clause. There is no plain "skip"."""

BROKEN = ("FAIL", "CRASH", "HANG", "OOM", "PROTOCOL", "XPASS")
"""Verdicts that mean the adapter does not conform as declared: exit status 1."""

SOURCES = ("example", "cover", "law", "explore")
"""Where traces come from."""


class Observation(TypedDict):
    """What could be seen after one step: compact, for drawing. Rows are named by letters; see `kvspec.rows`."""

    result: str
    """ok, or refused RING-9, and so on."""
    offset: NotRequired[int | None]
    buffered: NotRequired[int | None]
    capacity: NotRequired[int | None]
    slots: NotRequired[list[str] | None]
    """The row in each slot of the state; "?" illegible, "NaN" unwritten; None where there is no state."""
    history: NotRequired[list[str] | None]
    """The rows of the history, in its own order."""
    queries: NotRequired[list[list[str]]]
    """For each query of the last append, the rows it sees."""
    view: NotRequired[list[str] | None]
    layers: NotRequired[dict[str, list[str] | None]]
    """Rows of one of several, by what it is: `layer 0`, `saved layer 0`, `layer 0, sequence 1`, `cache B`."""
    other: NotRequired[dict[str, Any]]
    """Anything else: can, snapshot, parent, child, bytes, drafted, lengths, sequences, moved, held, plan, ..."""


class DrawnStep(TypedDict):
    """One operation of a drawn trace."""

    do: str
    """The operation in the compact notation."""
    clauses: list[str]
    """Clauses this step exercised."""
    expected: Observation
    found: Observation
    differs: list[str]
    """Keys of Observation in which found differs from expected; empty for all but the last step."""


class Fits(TypedDict):
    """How many traces somebody answers as the adapter did, of how many that were tried."""

    traces: int
    of: int


class Named(TypedDict):
    """A known bug that answers as the adapter did."""

    id: str
    """The mutant's: RING-07/CutAtTheOffset, stale-cursor/RingStaleCursor."""
    says: str
    """What it does, in a sentence."""
    anomaly: str
    """The id of what kind of wrong it is; see `kvspec.reading.anomalies`. Empty where it is none of them."""
    link: str
    """Where the bug was seen; empty where nobody reported it."""
    clauses: list[str]
    """Clauses that it breaks."""
    fits: Fits


class Failure(TypedDict):
    """A trace on which the adapter differed, as short as could be made."""

    verdict: str
    """FAIL, CRASH, HANG, OOM, PROTOCOL."""
    clauses: list[str]
    """Clauses that the differing step fails."""
    implicated: list[str]
    """Clauses exercised by earlier steps of the trace."""
    source: str
    test: str
    oracle: str
    field: str
    """What differed: offset, state, history, view, mask, capacity, ..."""
    message: str
    """What a person would say: slot 3, head 1 holds row q; expected row z."""
    words: str
    """The trace in the compact notation, in a line."""
    trace: dict[str, Any]
    steps: list[DrawnStep]
    deterministic: bool
    diagnosis: NotRequired[list[Named]]
    """Known bugs that answer as the adapter did, the likeliest first; none where none does. Not there where nobody
    looked."""


class ClauseRecord(TypedDict):
    """The verdict on one clause."""

    id: str
    chapter: str
    level: str
    """The clause's own level."""
    verdict: str
    judged_at: str | None
    """The level it was judged at; None where it was not judged."""
    oracle: str | None
    """reference or list model."""
    tests: list[str]
    exercised: dict[str, int]
    """Steps that exercised it, by source."""
    differed: int
    """Traces whose differing step exercised it."""
    suspicion: float
    """0..1: how well differing and agreeing traces single this clause out (Ochiai)."""
    reason: str
    """Why the verdict is not PASS; empty otherwise."""
    trace: dict[str, Any] | None
    """The shortest trace on which it failed."""
    text: str


class Coverage(TypedDict):
    """How much one source exercised."""

    traces: int
    operations: int
    states: int
    transitions: int
    pairs: dict[str, int]
    """Pairs of consecutive operations, "append rewind", and how often."""


class Residency(TypedDict):
    """What one operation cost on a device, of all the times it was metered under one condition."""

    kind: str
    """The kind of cache."""
    op: str
    when: str
    """The condition: resident, within the capacity; empty where there is only one."""
    steps: int
    least: dict[str, int]
    """The smallest of each count of the meter."""
    most: dict[str, int]


class Record(TypedDict):
    """The whole run."""

    kvrecord: int
    spec: dict[str, str]
    """version and hash of the chapters."""
    suite: dict[str, str]
    vectors: dict[str, Any]
    started: str
    seconds: float
    partial: bool
    partial_reason: str
    machine: dict[str, Any]
    """system, cpu, cores, memory_bytes, python, packages."""
    command: list[str]
    """How the adapter was named on the command line: its name, or `--` and a command."""
    adapter: dict[str, Any]
    """Its description (see `kvspec.contract.Description`)."""
    selection: dict[str, Any]
    """chapters, clauses, traces, seed."""
    exit_status: int
    summary: dict[str, int]
    """Clauses by verdict."""
    clauses: list[ClauseRecord]
    failures: list[Failure]
    """Shortest first; each is the shortest for some clause."""
    coverage: dict[str, Coverage]
    """By source and chapter: "cover ring"."""
    residency: NotRequired[list[Residency]]
    """What operations cost, where the adapter has a meter."""
    problems: list[str]
    """What went wrong in the harness, or with the adapter as a whole."""
    memory: dict[str, int]
    """Peak resident bytes of the largest process of each sort: parent (who judges), child (the worker)."""
