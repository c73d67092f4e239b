"""The refusals of pools that find rows by content: see `kvspec.refusals.common`."""

from __future__ import annotations

from kvspec.refusals.texts import Text, text


def __getattr__(name: str) -> Text:
    return text("keyed", name)
