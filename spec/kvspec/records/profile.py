"""The record of a profile: one JSON document with all times measured, and the machine and versions used.

A profile judges nothing, so nothing here is a verdict.
"""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import UNSET, UnsetType

from kvspec.records.document import Count, Document, Part, Seconds, Version

VERSION = 2


class Spread(Part):
    """The median of all rounds and their quartiles."""

    median: float
    low: float
    high: float


class Mode(Part):
    """A group of rounds whose times are near each other, and far from those of the others."""

    ms: float
    """The median of the group."""
    rounds: Count


class LimitRecord(Part):
    """How fast the device does the plainest work over memory, over all rounds of the profile."""

    name: str
    """read, write, copy; download, of a device that has memory of its own."""
    bytes: Count
    """Bytes one such work moves; a copy and a download read and write."""
    rounds: Count
    rate: Spread
    """GB/s, 10^9 bytes."""


class PeerTime(Part):
    """A peer at the same work, measured in the same rounds."""

    peer: str
    ms: Spread
    ratio: Spread
    """The adapter's time over the peer's, round by round: below 1 the adapter is faster."""
    form: str | UnsetType = UNSET
    """The form of the work that was fastest, where the peer has several."""
    on_device: bool | UnsetType = UNSET
    """True where the device's clock timed both: then `ms` and `ratio` are of the device's time."""


class PeerRecord(Part):
    """A peer that took part, or why it did not."""

    name: str
    words: str
    """What it is and its version."""
    missing: str
    """Why it took no part; empty where it did."""


class Measurement(Part, kw_only=True):
    """One operation at one shape. Times, counts and bytes are of one operation."""

    id: str
    operation: str
    words: str
    """What the operation does."""
    model: str
    """The model that has these shapes."""
    kind: str
    """What is opened: growing, ring, copy, store, page, bucket; rope, where nothing is."""
    config: dict[str, Any]
    context: Count
    """Rows that are there: read, saved, or written behind; of a ring its window."""
    rows: Count
    """Rows that one operation appends or copies."""
    batch: Count
    dtype: str
    """The dtype of the rows; f32-f16 where a copy casts."""
    bytes_read: Count
    """Computed by the spec's formula: see `kvspec.traffic`."""
    bytes_written: Count
    flops: Count
    operations: Count
    """Operations done in one round."""
    rounds: Count
    device_ms: Spread | None
    """How long the device was busy; null where the adapter has no clock."""
    host_ms: Spread
    """Until the call returned."""
    total_ms: Spread
    """Until the device was done. A ratio to a peer is taken of it, unless the device's clock timed both."""
    rate: Spread | None
    """GB/s of its bytes over the device's time, or over the total where there is no clock; null without bytes."""
    limit: str | None
    """The limit it is held against; null where nothing moves."""
    fraction: Spread | None
    """Its rate over that limit's, each measured in the same round."""
    limit_bytes: Count | UnsetType = UNSET
    """The bytes that the limit moved in one go, which is its footprint: about as many as the case rotated through,
    at most all that limits stream over."""
    in_cache: bool | UnsetType = UNSET
    """True where the rows it rotates through are fewer than four times the device's last-level cache, which holds a
    part of them; its limit has the same footprint."""
    modes: list[Mode] | UnsetType = UNSET
    """Where the times until the device was done fall into two groups, these, the fast one first. A median is then a
    time of either, or of none. Absent where they are one group."""
    metered: dict[str, float] | None
    """What the adapter's meter counted; null where it has none."""
    peers: list[PeerTime]


class SkippedCase(Part):
    """A case that was not measured."""

    id: str
    reason: str


class Profile(Document, tag_field="kvprofile", tag=VERSION):
    """How fast an adapter is, beside its peers and the limits of its device. Nothing in it is a verdict."""

    NAME: ClassVar = "the record of a profile"
    WRITTEN_BY: ClassVar = "kvconform profile --report DIR"

    spec: Version
    """Version and hash of the chapters."""
    suite: Version
    """Version and hash of the suite."""
    started: str
    """When, ISO 8601."""
    seconds: Seconds
    partial: bool
    """Whether the profile was cut short."""
    partial_reason: str
    """Why it was; empty where it was not."""
    machine: dict[str, Any]
    """system, cpu, cores, memory_bytes, python, packages, load."""
    command: list[str]
    """How the adapter was named on the command line."""
    adapter: dict[str, Any]
    """The adapter's description of itself: see kvconform:describe."""
    clock: str
    """How device time is measured; empty where the adapter has no clock."""
    streams: str
    """How the limits are measured; empty where they are not."""
    settings: dict[str, Any]
    """rounds, turn_seconds, case_seconds, whole_seconds, memory_bytes, quick, cases."""
    limits: list[LimitRecord]
    peers: list[PeerRecord]
    measurements: list[Measurement]
    skipped: list[SkippedCase]
