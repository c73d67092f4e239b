"""The record of an engine that was asked by a probe: how many histories of its cache, and which were wrong."""

from __future__ import annotations

from typing import ClassVar

from kvspec.records.document import Count, Document, Part, Seconds, Version
from kvspec.records.serving import ServingPrecision, ServingProbe

VERSION = 1


class AskedFailure(Part):
    """A history behind which the engine's answers are wrong, made as short as could be found."""

    clauses: list[str]
    """The clauses that it breaks."""
    history: str
    """What was done: appends, rewinds, copies, and so on."""
    found: list[str]
    """What its queries saw, in words."""


class AskedRecord(Document, tag_field="kvasked", tag=VERSION):
    """What an engine that loaded a probe was asked through its own cache, and what its queries saw."""

    NAME: ClassVar = "the record of an engine that was asked"
    WRITTEN_BY: ClassVar = "kvconform ask ENGINE DIR --report DIR"

    spec: Version
    """Version and hash of the spec."""
    suite: str
    """Version of the suite."""
    started: str
    """When, ISO 8601."""
    seconds: Seconds
    """How long all took."""
    engine: str
    """The engine, by the name that it is asked under."""
    version: str
    """Its version; empty where it is not known."""
    abilities: list[str]
    """What it has beside appends: rewind, copy, beside, load, batch, shift, drop."""
    probe: ServingProbe
    precision: ServingPrecision
    seed: Count
    histories: Count
    """Histories and random lives."""
    queries: Count
    """Queries whose answers were read."""
    refused: Count
    """Rewinds that the engine refused."""
    failures: list[AskedFailure]
    """The shortest histories that are wrong."""
    untold: list[str]
    """What answers could not tell."""
