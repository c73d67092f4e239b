"""The refusals of parcels: see `kvspec.refusals.common`."""

from __future__ import annotations

from kvspec.refusals.texts import Text, text


def __getattr__(name: str) -> Text:
    return text("parcels", name)
