"""The record of `kvconform mutants`: one JSON document that holds whether and how every planted fault was found."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from kvspec.records.document import Count, Document, Part, Seconds, Version

VERSION = 1

SOURCES = ("examples", "cover", "explored", "blind", "alike", "inputs", "geometry", "walk", "large")
"""Where traces come from: the chapters' worked examples, the frozen covers, exploration."""

Name = Annotated[str, Meta(min_length=1)]
BySource = Annotated[dict[str, bool], Meta(extra_json_schema={"propertyNames": {"enum": list(SOURCES)}})]


class MutantRecord(Part):
    """One cache that is wrong on purpose."""

    id: Name
    """Unique among all mutants."""
    bug_class: Name = field(name="class")
    """A class of the catalogue, such as RING; or systematic, control, fake."""
    link: str
    """Where the bug was seen; empty where it was made up."""
    says: str
    """What it does."""
    clauses: list[str]
    """The clauses it breaks."""
    killed: bool
    """Whether anything found it."""
    by: list[str]
    """The clauses blamed on the shortest trace."""
    operations: Count
    """Operations of that trace; 0 where there is none."""
    equivalent: str
    """Why nothing can find it; empty where something must."""
    control: Literal["", "lives", "dies"]
    """lives or dies for a control, empty otherwise."""
    right: bool | None
    """Whether a clause that it breaks was blamed; null where it names none."""
    sources: BySource
    """Whether each source that was tried found it."""
    trace: str
    """The shortest trace, as a sentence."""
    message: str
    """What differed on it."""
    seconds: Seconds
    """How long the hunt took."""


class Matrix(Document, tag_field="kvmutants", tag=VERSION):
    """Caches that are wrong on purpose: whether the suite finds each, by what, and how soon."""

    NAME: ClassVar = "a mutation matrix"
    WRITTEN_BY: ClassVar = "kvconform mutants --report DIR"

    spec: Version
    """Version and hash of the chapters."""
    seconds: Seconds
    """How long all took."""
    mutants: list[MutantRecord]
    suite: Version | None = None
    """Version and hash of the suite; null where an older suite wrote it."""
    left: Count = 0
    """Mutants that were chosen and not hunted, as the command was interrupted."""


def result(m: MutantRecord) -> str:
    """The result of the hunt for a mutant, in capitals where it is wrong."""
    if m.control == "lives":
        return "FAILED" if m.killed else "lives"
    if m.equivalent:
        return "FOUND" if m.killed else "equivalent"
    return "killed" if m.killed else "SURVIVED"
