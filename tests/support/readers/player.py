"""Reads what a page packs for the player of its drawings, as the player does."""

from __future__ import annotations

import json
import zlib
from base64 import urlsafe_b64decode
from typing import Any


def unpacked(text: str) -> dict[str, Any]:
    """What was packed."""
    data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    return dict(json.loads(zlib.decompress(data, -15)))
