"""A bug in the text of the kernels, by the change that plants it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Planted:
    """`old` becomes `new` wherever it stands in the text. Without them the runtime misbehaves: `watched.Hasty`."""

    name: str
    kind: str
    old: str = ""
    new: str = ""

    def plant(self, text: str) -> str:
        """The text with the bug in it. An AssertionError if there is no place for it any more."""
        assert self.old in text, f"{self.name}: the kernels no longer say {self.old!r}; plant it elsewhere"
        return text.replace(self.old, self.new) if self.old else text


def of_kind(planted: Planted, kind: str) -> Planted:
    """The same bug, which a tool names so."""
    return Planted(planted.name, kind, planted.old, planted.new)
