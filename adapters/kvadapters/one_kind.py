"""An adapter that opens one kind of cache: what it says of itself is known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kvspec.errors import Unsupported
from kvspec.geometry import Config


@dataclass(frozen=True)
class OneKind:
    """The adapter."""

    name: str
    kind: str
    opens: Callable[[Config], Any]
    claim: Mapping[str, Any]
    """What it says of the kind's chapter, beside the level."""
    said: Mapping[str, Any]
    """What it says of itself: its version, dtypes, limits."""
    also: Mapping[str, Any] = field(default_factory=dict)
    """What it claims of other chapters."""

    def describe(self) -> dict[str, Any]:
        """What it claims."""
        chapters = {self.kind: {"level": "visible", **self.claim}, **self.also}
        return {"name": self.name, "chapters": chapters, **self.said}

    def open(self, kind: str, config: Config) -> Any:
        """A fresh cache. Raises Unsupported for other kinds."""
        if kind != self.kind:
            raise Unsupported(f"no kind {kind}")
        return self.opens(config)
