"""The record of a serving engine that was judged by requests: what was asked, what was wrong, and the shortest
history of each failure."""

from __future__ import annotations

from typing import ClassVar, Literal

from kvspec.records.document import Count, Document, Part, Seconds, Version

VERSION = 1

SIZES = ("block", "blocks", "chunk", "drafts", "sequences", "longest")
"""Sizes that an engine declares. `block` is the rows of a block, `blocks` their number. `chunk` is the tokens of a
prompt, `drafts` the drafted tokens and `sequences` the requests that are computed at once. `longest` is the tokens
of the longest text. 0: none, or not known."""

ServingVerdict = Literal["PASS", "PARTLY_OBSERVED", "FAIL", "NOT_CLAIMED", "NOT_RUN"]
"""The verdict on a clause of SERVE."""


class ServingEngine(Part):
    """The engine that was judged, and what it declares."""

    name: str
    version: str
    flags: str
    tells: Literal["all", "top", "tokens"]
    """What an answer holds of each token: all logprobs, those of the most likely, or none."""
    block: Count
    blocks: Count
    chunk: Count
    drafts: Count
    sequences: Count
    longest: Count
    can: list[str]
    """What it can be asked: cached, cancel, drafts, reuse, ..."""


class ServingProbe(Part):
    """The probe that the engine had loaded: see `probe.json`."""

    recipe: Count
    architecture: str
    layers: str
    output: str
    content_ids: Count
    vocabulary: Count
    lost: list[str]
    """What these layers cannot show."""
    adapters: list[str] = []  # noqa: RUF012  (msgspec copies it)
    """The adapters that it has."""


class ServingPrecision(Part):
    """What an engine computes in."""

    dtype: str
    rows: str | None
    """The form of its rows; null where they are stored as they are computed."""
    logprob: float
    """The largest error of a logprob as it is handed out."""


class ServingClause(Part):
    """A clause, and what was asked about it."""

    id: str
    verdict: ServingVerdict
    """PASS: asked, seen to be exercised, and it holds. PARTLY_OBSERVED: it holds as far as was asked, and the
    engine does not tell whether it did what the clause is about. NOT_RUN: not exercised. NOT_CLAIMED: it cannot do
    this."""
    requests: Count
    """Requests of the histories that aim at it."""
    why: str
    """What is behind the verdict, in words."""


class ServingFailure(Part):
    """A history that is answered wrongly, made as short as could be found."""

    clause: str
    """The clause that it breaks first of all."""
    sort: str
    """What went wrong: extra, missing, distance, context, weights, share, token, answer, regret, computed, reused,
    failed."""
    history: str
    """The shortest history, in the notation of kvspec.serving."""
    alone: bool
    """Whether it fails with nothing before it. Otherwise the engine had answered other requests."""
    found: list[str]
    """What is wrong, in words."""
    drawing: list[str]
    """The requests of the history, with what is reused, cached and seen."""
    first_seen: str
    """The history in which it was seen first."""
    after: Count
    """Requests that the run had asked when it was seen."""


class ServingRecord(Document, tag_field="kvserving", tag=VERSION):
    """What a serving engine was asked, and whether each answer depended on the request's own tokens alone."""

    NAME: ClassVar = "the record of a serving engine"
    WRITTEN_BY: ClassVar = "kvconform run --server ADDRESS --report DIR"

    spec: Version
    """Version and hash of the chapter SERVE."""
    suite: str
    """Version of the suite."""
    started: str
    """When, ISO 8601."""
    seconds: Seconds
    """How long all took."""
    engine_seconds: Seconds
    """How long the engine was waited for; reading took the rest."""
    partial: bool
    """Whether it was interrupted."""
    engine: ServingEngine
    probe: ServingProbe
    precision: ServingPrecision
    seed: Count
    asked: dict[str, Count]
    """requests, tokens, answered, refused, failed, cancelled, new tokens, cached tokens told, queries."""
    counted: dict[str, int]
    """What the engine has counted itself: cached tokens, evictions, preemptions, drafts accepted and rejected."""
    clauses: list[ServingClause]
    failures: list[ServingFailure]
    wrong_histories: Count
    """Histories with a wrong answer, those that were not made short among them."""
    untold: dict[str, Count]
    """What answers could not tell, and how often."""
    exit_status: Count
    """0 conforms, 1 a clause is broken, 3 a clause that the engine can be asked about was not exercised."""
