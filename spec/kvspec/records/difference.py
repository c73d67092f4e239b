"""The difference of two records of one engine: what broke anew, what was mended, and what is no longer judged."""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

from kvspec.records.document import Count, Document, Part

VERSION = 1

Group = Literal[
    "broke anew",
    "mended",
    "no longer judged",
    "new in the spec",
    "newly judged",
    "seen less of",
    "still broken",
]
"""What became of a clause from one record to the other."""

GROUPS: tuple[Group, ...] = get_args(Group)


class Side(Part):
    """One of the two records."""

    engine: str
    version: str
    started: str
    """When, ISO 8601."""
    spec: str
    """Version and hash of the chapters."""
    result: str
    """The result of its run in one line."""


class Change(Part):
    """What became of one clause."""

    group: Group
    clause: str
    """Its id. Empty for a breach of no clause: the adapter died, or did something that it does not claim."""
    before: str
    """The verdict in the older record; empty where it has none."""
    now: str
    """The verdict in the newer record; empty where it has none."""
    trace: str
    """The shortest trace or history that shows it, in a line; empty where there is none."""
    why: str
    """What differed, or why it was not judged."""
    drawing: list[str]
    """The lines of the drawing of that trace, for what broke anew."""


class Difference(Document, tag_field="kvdiff", tag=VERSION):
    """What changed from an older record to a newer one."""

    NAME: ClassVar = "the difference of two records"
    WRITTEN_BY: ClassVar = "kvconform diff --json"

    before: Side
    now: Side
    notes: list[str]
    """What makes the records harder to compare: other engines, other parts of the suite, another spec."""
    changes: list[Change]
    """One for each clause that changed or is still broken, by group."""
    unchanged: Count
    """Clauses that hold in both."""
    exit_status: Count
    """1 something broke anew; 3 nothing did, but the newer record is no answer; 0 else."""

    def of(self, group: Group) -> list[Change]:
        """Give the changes of a group."""
        return [change for change in self.changes if change.group == group]
