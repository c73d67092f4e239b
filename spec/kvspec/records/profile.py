"""The record of a profile: one JSON document that tells how fast everything was, and by what it was measured.

A profile judges nothing, so nothing here is a verdict. The types below name its fields;
`kvspec/schemas/profile.json` is the published schema.
"""

from __future__ import annotations

from typing import Any, TypedDict

VERSION = 2


class Spread(TypedDict):
    """The median of all rounds and their quartiles."""

    median: float
    low: float
    high: float


class LimitRecord(TypedDict):
    """How fast the device reads, writes or copies by the plainest work, over all rounds of the profile."""

    name: str
    """read, write or copy."""
    bytes: int
    """Bytes one such work moves; a copy reads and writes."""
    rounds: int
    rate: Spread
    """GB/s, 10^9 bytes."""


class PeerTime(TypedDict):
    """A peer at the same work, measured in the same rounds."""

    peer: str
    ms: Spread
    ratio: Spread
    """The adapter's time over the peer's, round by round: below 1 the adapter is faster."""


class PeerRecord(TypedDict):
    """A peer that took part, or why it did not."""

    name: str
    words: str
    """What it is and its version."""
    missing: str
    """Why it took no part; empty where it did."""


class Measurement(TypedDict):
    """One operation at one shape. Times are of one operation; counts and bytes too."""

    id: str
    operation: str
    words: str
    model: str
    kind: str
    """What is opened: growing, ring, copy, store, page, bucket; rope, where nothing is."""
    config: dict[str, Any]
    context: int
    """Rows that are there: read, saved, or written behind; of a ring its window."""
    rows: int
    """Rows that one operation appends or copies."""
    batch: int
    dtype: str
    """Of the rows; f32-f16 where a copy casts."""
    bytes_read: int
    """By the spec's formula: see `kvspec.traffic`."""
    bytes_written: int
    flops: int
    operations: int
    """Operations done in one round."""
    rounds: int
    device_ms: Spread | None
    """The device was busy with it; None where the adapter has no clock."""
    host_ms: Spread
    """Until the call returned."""
    total_ms: Spread
    """Until the device was done with it: what a ratio to a peer is taken of."""
    rate: Spread | None
    """GB/s of its bytes over the device's time, or over the total where there is no clock; None without bytes."""
    limit: str | None
    """The limit it is held against; None where nothing moves."""
    fraction: Spread | None
    """Its rate over that limit's, each measured in the same round."""
    metered: dict[str, float] | None
    """What the adapter's meter counted; None where it has none."""
    peers: list[PeerTime]


class Skipped(TypedDict):
    """A case that was not measured."""

    id: str
    reason: str


class Profile(TypedDict):
    """The whole profile."""

    kvprofile: int
    spec: dict[str, str]
    suite: dict[str, str]
    started: str
    seconds: float
    partial: bool
    partial_reason: str
    machine: dict[str, Any]
    command: list[str]
    adapter: dict[str, Any]
    """Its description (see `kvspec.contract.Description`)."""
    clock: str
    """How device time is measured; empty where the adapter has no clock."""
    streams: str
    """By what the limits are measured; empty where they are not."""
    settings: dict[str, Any]
    """rounds, seconds a round lasts at least, memory in rotation, quick, cases."""
    limits: list[LimitRecord]
    peers: list[PeerRecord]
    measurements: list[Measurement]
    skipped: list[Skipped]
