"""The reference with some of its caches replaced."""

from __future__ import annotations

from typing import Any, ClassVar

from kvadapters.reference import Reference


class Variant(Reference):
    """The reference under another name, whose `caches` differ: it claims all chapters at level storage, but those
    that are only `visible`."""

    visible: ClassVar[tuple[str, ...]] = ()

    def describe(self) -> dict[str, Any]:
        """The reference's claims, some at a lower level."""
        said = super().describe()
        claims = said["chapters"] | dict.fromkeys(self.visible, "visible")
        return said | {"name": type(self).__name__, "chapters": claims}
