"""What every record is made of.

A record is a msgspec struct: its types are the check that loading makes, and its types and the texts under its
fields are the published schema (`kvspec/schemas`).
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, Struct

Count = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(ge=0)]


class Part(Struct, kw_only=True, forbid_unknown_fields=True):
    """An object in a record. A field that may be absent is UNSET where it is."""

    def get(self, name: str) -> Any:
        """A field by its name; None where it is absent."""
        value = getattr(self, name)
        return None if value is UNSET else value


class Version(Part):
    """Which version of something, and a hash of its text."""

    version: str
    hash: str


class Document(Part, kw_only=True):
    """A whole record. It begins with the field that is its tag: `"kvrecord": 1`, and so on."""

    NAME: ClassVar[str]
    """What it is called: a run record."""
    WRITTEN_BY: ClassVar[str]
    """The command that writes one."""
